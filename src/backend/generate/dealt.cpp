// dealt.cpp (generate) - each thread adds up some elements over all rows of its block, in registers.
//
// Elements are a matrix: where the value uses its index e as floor(e / width) and e % width alone, of that width, else
// of one line. A thread takes a tile of it at a time, since the elements of a line or a column share what they read.
#include "backend/generate/dealt.hpp"

#include <algorithm>

namespace pgkm::generate {
namespace {

using std::to_string;

// Of the expression e the width, if it is floor(index / width) or index % width; else 0.
std::int64_t width_by(const Program &program, std::int32_t e, std::int32_t loop)
{
    const PgkmExpression &x = program.at(e);
    const PgkmExpression &of = program.is_whole_quotient(e) ? program.at(x.a[0]) : x;
    const bool divides = program.is_whole_quotient(e) || (x.operation == PGKM_MODULO && program.whole(e).is);
    if (!divides || program.at(of.a[0]).operation != PGKM_INDEX || program.at(of.a[0]).loop != loop ||
        program.at(of.a[1]).operation != PGKM_CONSTANT)
        return 0;
    return program.whole(of.a[1]).least;
}

// Of the matrix of elements: of one line where the value has another use of the index.
std::int64_t width_of(const Program &program, const Output &output)
{
    const PgkmItem &item = program.source().items[output.item];
    std::vector<bool> needed(static_cast<std::size_t>(program.size()));
    std::int64_t width = 0;
    needed[static_cast<std::size_t>(item.value)] = true;
    for (std::int32_t e = item.value; e >= 0; --e) {
        if (!needed[static_cast<std::size_t>(e)])
            continue;
        const PgkmExpression &x = program.at(e);
        const std::int64_t found = width_by(program, e, item.loop);
        if ((found != 0 && width != 0 && found != width) || (x.operation == PGKM_INDEX && x.loop == item.loop))
            return output.elements;
        width = found != 0 ? found : width;
        for (int i = 0; found == 0 && i < arguments_of(x.operation); ++i)
            if (x.a[i] >= 0)
                needed[static_cast<std::size_t>(x.a[i])] = true;
    }
    return width > 0 && output.elements % width == 0 ? width : output.elements;
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

// The shape that takes the threads least: an operation or two an element, some for what a line or a column reads. The
// totals of a tile lie in registers, of which a block of many threads has less.
Tile tile_of(const Program &program, const Plan &plan, const Output &output)
{
    const std::int64_t most = plan.threads > 256 ? 6 : 8, width = width_of(program, output);
    Tile best = {width, output.elements / width};
    const auto time = [&](const Tile &tile) {
        return (tile.count() + plan.threads - 1) / plan.threads *
               (tile.lines * tile.columns + 2 * (tile.lines + tile.columns));
    };
    for (std::int64_t lines = 1; lines <= std::min(most, best.height); ++lines)
        for (std::int64_t columns = 1; columns <= std::min(most, width); ++columns)
            if (const Tile tile = {width, best.height, lines, columns}; time(tile) < time(best))
                best = tile;
    return best;
}

// A product of columns is finite: values of a row are at most 2^500. Of others fma() could hide that one is not.
bool is_product_of_columns(const Program &program, std::int32_t e)
{
    const Factors factors = factors_of(program.source(), program.at(e));
    return factors && program.at(factors.x).operation == PGKM_COLUMN && program.at(factors.y).operation == PGKM_COLUMN;
}

void write_output(Text &text, const Program &program, const Plan &plan, const Output &output)
{
    const Tile tile = tile_of(program, plan, output);
    const std::string height = to_string(tile.height), width = to_string(tile.width);
    // Elements of a tile beyond the matrix are computed for nothing.
    const std::string a = "min(a0 + u * " + to_string(tile.down()) + ", " + to_string(tile.height - 1) + ")",
                      b = "min(b0 + v * " + to_string(tile.across()) + ", " + to_string(tile.width - 1) + ")",
                      place = a + ", " + b;
    const auto for_tile = [&](const auto &body) {
        text.line("#pragma unroll");
        text.open("for (int u = 0; u < " + to_string(tile.lines) + "; ++u)");
        text.line("#pragma unroll");
        text.open("for (int v = 0; v < " + to_string(tile.columns) + "; ++v)");
        body();
        text.close();
        text.close();
    };
    text.line();
    text.line("// " + output.name + ": a thread takes " + to_string(tile.lines) + " x " + to_string(tile.columns) +
              " of " + height + " x " + width + " elements of all rows");
    text.open("for (int tile = t; tile < " + to_string(tile.count()) + " && *stop == 0; tile += threads)");
    text.line("const int a0 = tile / " + to_string(tile.across()) + ", b0 = tile % " + to_string(tile.across()) + ";");
    text.line(std::string(output.integer ? "long long" : "double") + " total[" + to_string(tile.lines) + "][" +
              to_string(tile.columns) + "] = {};");
    text.open("for (int k = 0; k < n; ++k)");
    text.line("bool good = true;");
    for_tile([&] { text.line("good = add_" + output.name + "(row(k), " + place + ", total[u][v]) && good;"); });
    text.line("if (!good)");
    text.line("    atomicMin(fault, Word(first + at + k));");
    text.close();
    for_tile([&] {
        text.line("if (a0 + u * " + to_string(tile.down()) + " >= " + height + " || b0 + v * " +
                  to_string(tile.across()) + " >= " + width + ")");
        text.line("    continue;");
        text.line("Word *const to = R + " + to_string(output.base) + " + ((" + a + ") * " + width + " + " + b + ") * " +
                  to_string(output.words) + ";");
        if (output.integer)
            return text.line("add_integer(to, 1, total[u][v], in_block);");
        text.line("add(to, total[u][v], in_block);");
        // One that is no number comes of a row with such a value, if of any.
        text.open("for (int k = 0; !finite(total[u][v]) && k < n; ++k)");
        text.line("double one = 0.0;");
        text.line("if (!add_" + output.name + "(row(k), " + place + ", one) || !finite(one))");
        text.line("    atomicMin(fault, Word(first + at + k));");
        text.close();
    });
    text.close();
}

} // namespace

void write_element(Text &text, const Program &program, const Plan &plan, const Rows &rows, const Output &output)
{
    const PgkmItem &item = program.source().items[output.item];
    const std::int32_t filter = program.source().objects[output.object].filter;
    const std::int64_t width = width_of(program, output);
    const std::string i = "i" + to_string(item.loop);
    const bool staged = plan.stage.rows > 0;
    text.line("// Element b of line a of " + output.name + ".");
    text.open("const auto add_" + output.name + " = [&](const " + (staged ? "double" : "Element") +
              " *__restrict__ row, int a, int b, " + (output.integer ? "long long" : "double") + " &total) -> bool");
    text.line("const int " + i + " = a * " + to_string(width) + " + b;");
    Expressions expressions(program, plan.inputs, rows.float32 && !staged, text);
    for (std::int32_t e = 0; e < program.size(); ++e)
        if (width != output.elements && width_by(program, e, item.loop) != 0)
            expressions.give(e, program.at(e).operation == PGKM_MODULO ? "b" : "a");
    if (filter >= 0) {
        text.line("if (!" + expressions.truth(filter) + ")");
        text.line("    return true;");
    }
    if (output.integer)
        text.line("total += scaled(" + expressions.finite_number(item.value) + ", scales[" + i + " + " +
                  to_string(output.scale) + "]);");
    else if (is_product_of_columns(program, item.value))
        expressions.add_to("total", item.value);
    else
        text.line("total += " + expressions.number(item.value) + ";");
    text.line("return true;");
    text.close(";");
}

void write_dealt(Text &text, const Program &program, const Plan &plan)
{
    const std::vector<Output> &outputs = plan.words.outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [](const Output &output) { return output.dealt; }))
        return;
    const Stage &stage = plan.stage;
    const std::string columns = to_string(stage.columns), rows = stage.rows > 0 ? to_string(stage.rows) : "threads";
    text.line("const long long end = min(count, from + threads); // of the block's rows");
    text.open("for (long long at = from; at < end; at += " + rows + ")");
    text.line("const int n = int(min(end - at, (long long)" + rows + "));");
    if (stage.rows > 0) {
        text.line("double *const stage = (double *)(shared + " + to_string(stage.place) + ");");
        text.line("__syncthreads(); // the rows before are done with");
        text.line("for (int w = t; w < n * " + columns + "; w += threads)");
        text.line("    stage[w] = double(rows[(at + w / " + columns + ") * d + " + to_string(stage.first) + " + w % " +
                  columns + "]);");
        text.line("__syncthreads();");
        text.line("const auto row = [&](int k) { return stage + k * " + columns + " - " + to_string(stage.first) +
                  "; };");
    } else {
        text.line("const auto row = [&](int k) { return rows + (at + k) * d; };");
    }
    for (const Output &output : outputs)
        if (output.dealt)
            write_output(text, program, plan, output);
    text.close();
}

} // namespace pgkm::generate
