// spread.cpp (generate) - each thread adds up some elements over all rows of its block, in registers.
//
// Elements are a matrix: where the value uses its index e as floor(e / width) and e % width alone, of that width, else
// of one line. A thread takes a tile of it at a time, since the elements of a line or a column share what they read.
#include "backend/generate/spread.hpp"

#include <algorithm>

#include "backend/generate/expressions.hpp"
#include "backend/reduction_walk.hpp"

namespace pgkm::generate {
namespace {

using std::to_string;

bool is_index(const Program &program, std::int32_t e, std::int32_t loop)
{
    return e >= 0 && program.at(e).operation == PGKM_INDEX && program.at(e).loop == loop;
}

// e / width or e % width, with no other use of the quotient than its whole part.
bool is_place_in_matrix(const Program &program, std::int32_t e, std::int32_t loop)
{
    const PgkmExpression &x = program.at(e);
    if (!is_index(program, x.a[0], loop) || x.a[1] < 0 || program.at(x.a[1]).operation != PGKM_CONSTANT ||
        program.facts(x.a[1]).kind != Kind::whole || program.facts(x.a[1]).least < 1)
        return false;
    if (x.operation != PGKM_DIVIDE)
        return x.operation == PGKM_MODULO;
    for (std::int32_t user = 0; user < program.size(); ++user)
        for (const std::int32_t a : program.at(user).a)
            if (a == e && !program.is_whole_quotient(user))
                return false;
    return true;
}

// Of the matrix of elements; that of one line where the index has other uses.
std::int64_t width_of(const Program &program, const Output &output)
{
    const PgkmItem &item = program.source().items[output.item];
    std::int64_t width = 0;
    bool alone = !is_index(program, item.value, item.loop);
    for (std::int32_t e = 0; e < program.size(); ++e)
        for (const std::int32_t a : program.at(e).a) {
            if (!is_index(program, a, item.loop))
                continue;
            alone = alone && is_place_in_matrix(program, e, item.loop);
            if (!alone)
                return output.elements;
            const std::int64_t found = program.facts(program.at(e).a[1]).least;
            alone = width == 0 || width == found;
            width = found;
        }
    return alone && width > 0 && output.elements % width == 0 ? width : output.elements;
}

// Such a product is finite: values of a row are at most 2^500. Of others fma() could hide that one is not.
bool is_product_of_columns(const Program &program, std::int32_t e)
{
    const PgkmExpression &x = program.at(e);
    return program.is_product(e) && program.at(x.a[0]).operation == PGKM_COLUMN &&
           (program.is_square(e) || program.at(x.a[1]).operation == PGKM_COLUMN);
}

struct Tile {
    std::int64_t width, height;          // of the matrix
    std::int64_t lines = 1, columns = 1; // of a tile

    // Tiles beside and below each other. Elements of a tile lie that far apart, so that those of a warp lie side by
    // side.
    std::int64_t across() const { return (width + columns - 1) / columns; }
    std::int64_t down() const { return (height + lines - 1) / lines; }
    std::int64_t count() const { return across() * down(); }
};

// Whether what depends on the row is a handful of quick operations.
bool is_light(const Program &program, std::int32_t value)
{
    constexpr int most = 8;
    int operations = 0;
    for (std::int32_t e = 0; e <= value; ++e) {
        const PgkmOperation operation = program.at(e).operation;
        if (!program.facts(value).needed.has(e) || !program.facts(e).dealt)
            continue;
        if (goes_over_loop(operation) || is_slow(operation) || operation == PGKM_CASE ||
            (operation == PGKM_POWER && !program.is_square(e)))
            return false;
        ++operations;
    }
    return operations <= most;
}

// The shape that takes the threads least: an operation or two an element, some for what a line or a column reads. The
// totals of a tile lie in registers, of which a block of many threads has less.
Tile tile_of(const Program &program, const Plan &plan, const Output &output)
{
    const std::int64_t most_lines = plan.threads > 256 ? 6 : 8;
    const std::int64_t width = width_of(program, output);
    Tile best = {width, output.elements / width};
    if (plan.layout == Layout::parts || !is_light(program, program.source().items[output.item].value))
        return best;
    const auto time = [&](const Tile &tile) {
        return (tile.count() + plan.threads - 1) / plan.threads *
               (tile.lines * tile.columns + 2 * (tile.lines + tile.columns));
    };
    for (std::int64_t lines = 1; lines <= std::min(most_lines, best.height); ++lines)
        for (std::int64_t columns = 1; columns <= std::min(most_lines, best.width); ++columns)
            if (const Tile tile = {width, best.height, lines, columns}; time(tile) < time(best))
                best = tile;
    return best;
}

std::string index_of(const Program &program, const Output &output)
{
    return "i" + to_string(program.source().items[output.item].loop);
}

// What spread_...() takes beside the place of the element.
std::string call(const Plan &plan, const Output &output, const std::string &place, const std::string &total)
{
    std::string text =
        "spread_" + output.name +
        (plan.stage.rows > 0 ? "(stage + k * " + to_string(plan.stage.columns) : "(rows + (at + k) * d") + ", " + place;
    for (const Input &input : plan.inputs)
        text += ", " + input.name;
    return text + (output.integer ? ", scales, " : ", ") + total + ", stop)";
}

// A total joins R. One that is no number comes of a row with such a value, if of any.
void write_total(Text &text, const Plan &plan, const Output &output, const std::string &to, const std::string &place,
                 const std::string &total)
{
    const bool own = plan.layout != Layout::global; // by this thread alone
    if (output.integer) {
        const auto add = [&](const std::string &word, const std::string &limb) {
            text.line(own ? "*(" + word + ") += Word(" + limb + ");" : "atomicAdd(" + word + ", Word(" + limb + "));");
        };
        add(to, total + " & 0x7fffff");
        add(to + " + 1", total + " >> 23");
        return;
    }
    text.line(own ? "*(" + to + ") = bits(value(*(" + to + ")) + " + total + ");" : "add(" + to + ", " + total + ");");
    text.open("for (int k = 0; !finite(" + total + ") && k < n; ++k)");
    text.line("double one = 0.0;");
    text.line("if (!" + call(plan, output, place, "one") + " || !finite(one))");
    text.line("    atomicMin(fault, Word(first + at + k));");
    text.close();
}

// Elements of this part of R, one at a time.
void write_part(Text &text, const Program &program, const Plan &plan, const Output &output, const Tile &tile)
{
    const std::string i = index_of(program, output), count = to_string(output.elements), size = to_string(output.words),
                      place = to_string(output.base) + " - first_word", width = to_string(tile.width),
                      element = i + " / " + width + ", " + i + " % " + width;
    text.open("for (int " + i + " = from_word(" + place + ", " + size + ") + t; " + i + " < to_word(" + place + ", " +
              size + ", " + count + ") && *(const volatile int *)stop == 0; " + i + " += threads)");
    text.line(output.integer ? "long long total = 0;" : "double total = 0.0;");
    text.line("for (int k = 0; k < n; ++k)");
    text.line("    if (!" + call(plan, output, element, "total") + ")");
    text.line("        atomicMin(fault, Word(first + at + k));");
    write_total(text, plan, output, "R + (" + place + ") + " + i + " * " + size, element, "total");
    text.close();
}

// A line or column of the matrix: elements of a tile beyond it are computed for nothing.
std::string within(const std::string &at, std::int64_t tile, std::int64_t all)
{
    return all % tile == 0 ? at : "min(" + at + ", " + to_string(all - 1) + ")";
}

void open_tile(Text &text, const Tile &tile)
{
    text.line("#pragma unroll");
    text.open("for (int u = 0; u < " + to_string(tile.lines) + "; ++u)");
    text.line("#pragma unroll");
    text.open("for (int v = 0; v < " + to_string(tile.columns) + "; ++v)");
}

void close_tile(Text &text)
{
    text.close();
    text.close();
}

} // namespace

void write_spread(Text &text, const Program &program, const Plan &plan, const Rows &rows)
{
    std::int64_t scales = 0;
    for (const Output &output : plan.outputs) {
        const std::int64_t scale = scales;
        scales += output.integer ? output.elements : 0;
        if (!output.spread)
            continue;
        const PgkmItem &item = program.source().items[output.item];
        const std::int32_t filter = program.source().objects[output.object].filter;
        const std::int64_t width = width_of(program, output);
        const std::string i = index_of(program, output);
        const bool staged = plan.stage.rows > 0;
        std::string head = "__device__ __forceinline__ bool spread_" + output.name + "(const " +
                           (staged ? "double" : "Element") + " *__restrict__ row, int a, int b";
        for (const Input &input : plan.inputs)
            head += ", const double *__restrict__ " + input.name;
        text.line("// Element b of line a of " + output.name + ".");
        text.line(head +
                  (output.integer ? ", const double *__restrict__ scales, long long &total" : ", double &total") +
                  ", const volatile int *stop)");
        text.open("");
        text.line("const int " + i + " = " + (width == output.elements ? "b" : "a * " + to_string(width) + " + b") +
                  ";");
        Expressions expressions(program, plan.inputs, rows.float32 && !staged, text, plan.stage.first);
        for (std::int32_t e = 0; width != output.elements && e < program.size(); ++e) {
            if (program.at(e).operation == PGKM_MODULO && is_index(program, program.at(e).a[0], item.loop))
                expressions.give(e, "b");
            if (program.is_whole_quotient(e) && is_index(program, program.at(program.at(e).a[0]).a[0], item.loop))
                expressions.give(e, "a");
        }
        if (filter >= 0) {
            expressions.evaluate(filter);
            expressions.finite_number(filter);
            text.line("if (!" + expressions.truth(filter) + ")");
            text.line("    return true;");
        }
        if (is_product_of_columns(program, item.value) && !output.integer) {
            expressions.add_to("total", item.value);
        } else {
            expressions.evaluate(item.value);
            text.line("total += " +
                      (output.integer ? "(long long)rint(" + expressions.finite_number(item.value) + " * scales[" + i +
                                            (scale == 0 ? "" : " + " + to_string(scale)) + "])"
                                      : expressions.number(item.value)) +
                      ";");
        }
        text.line("return true;");
        text.close();
        text.line();
    }
}

namespace {

void write_output(Text &text, const Program &program, const Plan &plan, const Output &output)
{
    const Tile tile = tile_of(program, plan, output);
    text.line();
    if (plan.layout == Layout::parts) {
        text.line("// " + output.name + ": a thread takes some elements of all rows");
        return write_part(text, program, plan, output, tile);
    }
    const std::string a = "a0 + u * " + to_string(tile.down()), b = "b0 + v * " + to_string(tile.across()),
                      total = "total[u][v]",
                      place = within(a, tile.lines, tile.height) + ", " + within(b, tile.columns, tile.width);
    text.line("// " + output.name + ": a thread takes " + to_string(tile.lines) + " x " + to_string(tile.columns) +
              " of " + to_string(tile.height) + " x " + to_string(tile.width) + " elements of all rows");
    text.open("for (int tile = t; tile < " + to_string(tile.count()) +
              " && *(const volatile int *)stop == 0; tile += threads)");
    text.line("const int a0 = tile / " + to_string(tile.across()) + ", b0 = tile % " + to_string(tile.across()) + ";");
    text.line(std::string(output.integer ? "long long" : "double") + " total[" + to_string(tile.lines) + "][" +
              to_string(tile.columns) + "] = {};");
    text.open("for (int k = 0; k < n; ++k)");
    text.line("bool good = true;");
    open_tile(text, tile);
    text.line("good = " + call(plan, output, place, total) + " && good;");
    close_tile(text);
    text.line("if (!good)");
    text.line("    atomicMin(fault, Word(first + at + k));");
    text.close();
    open_tile(text, tile);
    if (tile.height % tile.lines != 0 || tile.width % tile.columns != 0) {
        text.line("if (" + a + " >= " + to_string(tile.height) + " || " + b + " >= " + to_string(tile.width) + ")");
        text.line("    continue;");
    }
    write_total(text, plan, output,
                "R + " + to_string(output.base) + " + ((" + a + ") * " + to_string(tile.width) + " + " + b + ") * " +
                    to_string(output.words),
                a + ", " + b, total);
    close_tile(text);
    text.close();
}

} // namespace

void write_spread_loop(Text &text, const Program &program, const Plan &plan)
{
    const Stage &stage = plan.stage;
    text.line("const int block_rows = int(min(count - from, (long long)threads));");
    if (stage.rows > 0) {
        text.open("for (int s = 0; s < block_rows; s += " + to_string(stage.rows) + ")");
        text.line("const long long at = from + s;");
        text.line("const int n = min(block_rows - s, " + to_string(stage.rows) + ");");
        text.line("double *const stage = (double *)(shared + " + to_string(stage.place) + ");");
        text.line("__syncthreads(); // the rows before are done with");
        const std::string columns = to_string(stage.columns);
        text.line("for (int w = t; w < n * " + columns + "; w += threads)");
        text.line("    stage[w] = double(rows[(at + w / " + columns + ") * d + " + to_string(stage.first) + " + w % " +
                  columns + "]);");
        text.line("__syncthreads();");
    } else {
        text.line("const long long at = from;");
        text.line("const int n = block_rows;");
    }
    for (const Output &output : plan.outputs)
        if (output.spread)
            write_output(text, program, plan, output);
    if (stage.rows > 0)
        text.close();
}

} // namespace pgkm::generate
