// layout.cpp (generate) - which variables there are, where each lies, how many threads and blocks.
#include "backend/generate/layout.hpp"

#include <algorithm>
#include <cmath>

#include "backend/reduction_walk.hpp"

namespace pgkm::generate {
namespace {

constexpr std::int64_t word_bytes = 8;

std::vector<Input> inputs_of(const Program &program)
{
    std::vector<Input> inputs;
    for (std::int32_t e = 0; e < program.size(); ++e) {
        const PgkmExpression &x = program.at(e);
        if (x.operation != PGKM_PARAMETER)
            continue;
        const Input input = {"p" + std::to_string(inputs.size()), x.first, x.extent[0], x.extent[1], -1};
        if (std::none_of(inputs.begin(), inputs.end(), [&](const Input &other) {
                return other.first == input.first && other.rows == input.rows && other.columns == input.columns;
            }))
            inputs.push_back(input);
    }
    return inputs;
}

// Places follow from the layout.
std::vector<Output> outputs_of(const Program &program)
{
    const PgkmReduction &source = program.source();
    std::vector<Output> outputs;
    for (std::int32_t o = 0; o < source.n_objects; ++o) {
        const PgkmObject &object = source.objects[o];
        const std::string name = "update" + std::to_string(o);
        outputs.push_back({name + "_rows", o, -1, PGKM_COMBINE_COUNT, false, 1, object.cells, 1, 0, 0, false, -1});
        for (std::int32_t i = 0; i < object.n_items; ++i) {
            const PgkmItem &item = source.items[object.first_item + i];
            if (item.combine == PGKM_COMBINE_COUNT)
                continue; // the row counts
            const bool integer = item.combine == PGKM_COMBINE_SUM && source.exact != 0;
            outputs.push_back({name + "_" + std::to_string(i), o, object.first_item + i, item.combine, integer,
                               integer || item.combine == PGKM_COMBINE_ARGMIN ? 2 : 1, object.cells,
                               item.loop < 0 ? 1 : program.count(item.loop), 0, 0, false, -1});
        }
    }
    return outputs;
}

// Rows that all go to one cell would all change the same words at once. Where many elements are summed, and what they
// share of a row is cheap, each thread takes some elements of all the block's rows instead.
void spread_elements(const Program &program, std::vector<Output> &outputs)
{
    constexpr std::int64_t least_elements = 32;
    for (Output &output : outputs) {
        if (output.combine != PGKM_COMBINE_SUM || output.elements < least_elements ||
            program.source().objects[output.object].cell >= 0)
            continue;
        const PgkmItem &item = program.source().items[output.item];
        const std::int32_t filter = program.source().objects[output.object].filter;
        double shared = filter < 0 ? 0.0 : program.facts(filter).cost;
        for (std::int32_t e = 0; e < item.value; ++e)
            if (program.facts(item.value).needed.has(e) && program.facts(e).dealt &&
                !program.facts(e).loops.has(item.loop))
                shared = std::max(shared, program.facts(e).cost);
        output.spread = shared <= 2 * program.facts(item.value).cost && shared <= 16;
    }
}

// Each output an array of its own.
std::int64_t place_arrays(std::vector<Output> &outputs)
{
    std::int64_t words = 0;
    for (Output &output : outputs) {
        output.base = words;
        output.stride = output.elements * output.words;
        words += output.size();
    }
    return words;
}

// All outputs of a cell side by side, so that a row touches one place. Elements of two words begin at even ones, that
// no part of R ends within them.
std::int64_t place_records(std::vector<Output> &outputs)
{
    std::int64_t words = 0;
    for (std::size_t first = 0, end = 0; first < outputs.size(); first = end) {
        std::int64_t record = 0;
        bool pairs = false;
        for (end = first; end < outputs.size() && outputs[end].object == outputs[first].object; ++end) {
            Output &output = outputs[end];
            if (output.words == 2) {
                pairs = true;
                record += record % 2;
            }
            output.base = record;
            record += output.elements * output.words;
        }
        if (pairs) {
            record += record % 2;
            words += words % 2;
        }
        for (std::size_t i = first; i < end; ++i) {
            outputs[i].base += words;
            outputs[i].stride = record;
        }
        words += outputs[first].cells * record;
    }
    return words;
}

// A variable that may lie in shared memory.
struct Variable {
    Input *input;
    Output *output;
    std::int64_t words;
};

// The work's three orders; what does not fit any more is passed over and stays in device memory.
void place_variables(Plan &plan, std::int64_t most_words)
{
    std::vector<Variable> variables;
    for (Input &input : plan.inputs)
        variables.push_back({&input, nullptr, input.values()});
    for (Output &output : plan.outputs)
        variables.push_back({nullptr, &output, output.size() * plan.threads});
    if (plan.layout != Layout::thread_no_sorting)
        std::stable_sort(variables.begin(), variables.end(),
                         [](const Variable &a, const Variable &b) { return a.words < b.words; });
    if (plan.layout == Layout::thread_write_first)
        std::stable_partition(variables.begin(), variables.end(),
                              [](const Variable &variable) { return variable.output != nullptr; });
    plan.shared_words = plan.own_words = 0;
    for (const Variable &variable : variables) {
        const bool fits = variable.words <= most_words - plan.shared_words;
        if (variable.input != nullptr) {
            variable.input->place = fits ? plan.shared_words : -1;
        } else {
            variable.output->shared = fits;
            variable.output->place = fits ? plan.shared_words : plan.own_words;
            plan.own_words += fits ? 0 : variable.output->size();
        }
        plan.shared_words += fits ? variable.words : 0;
    }
}

// Most threads a block, of those whose copies of R fit shared memory; if none do, a few warps.
std::int32_t threads_per_copy(std::int64_t words, std::int64_t most_words, std::int32_t most_threads)
{
    for (const std::int32_t threads : {256, 128, 64, 32})
        if (threads <= most_threads && words <= most_words / threads)
            return threads;
    return std::min(128, most_threads);
}

// Inputs that fit beside R.
void place_inputs(Plan &plan, std::int64_t most_words)
{
    for (Input &input : plan.inputs) {
        const bool fits = input.values() <= most_words - plan.shared_words;
        input.place = fits ? plan.shared_words : -1;
        plan.shared_words += fits ? input.values() : 0;
    }
}

// The most rows of a warp that meet in a cell, about: the fullest of `cells` places for 32 balls.
double meeting_rows(std::int64_t cells)
{
    constexpr double rows = 32.0;
    const double mean = rows / static_cast<double>(cells);
    return cells == 1 ? rows : std::min(rows, mean + std::sqrt(2.0 * mean * std::log(cells)) + 1.0);
}

// Cycles of a multiprocessor for the changes of R by a warp's rows, about, as measured on an H200: by atomics in shared
// memory, which are quick on 32 bits, and loops elsewhere.
double block_time(const std::vector<Output> &outputs)
{
    constexpr double native = 3.0, loop = 20.0, glance = 6.0, spread = 1.5, threads = 256.0;
    double time = 0.0;
    for (const Output &output : outputs) {
        const auto elements = static_cast<double>(output.elements);
        const double meeting = meeting_rows(output.cells);
        if (output.spread)
            time += spread * std::max(elements, threads);
        else if (output.combine == PGKM_COMBINE_COUNT)
            time += native * (output.cells == 1 ? 1.0 : meeting);
        else if (output.combine == PGKM_COMBINE_SUM)
            time += elements * meeting * (output.integer ? 2.0 * native : loop);
        else // most values are no new extreme
            time += elements * glance;
    }
    return time;
}

// The same with a copy a thread; few threads cannot hide how long they wait for the rows.
double thread_time(const std::vector<Output> &outputs, std::int64_t blocks)
{
    constexpr double change = 4.0, wait = 1200.0, warps = 8.0;
    double time = wait / (warps * static_cast<double>(std::min<std::int64_t>(blocks, 8)));
    for (const Output &output : outputs)
        time += change * static_cast<double>(output.elements * output.words);
    return time;
}

// Rows for spread outputs: a power of two, as many as leave room for a second block where there is one. All that such
// an output reads of a row lies between two columns.
void place_stage(Plan &plan, const Program &program, std::int64_t most_words)
{
    constexpr std::int64_t most_rows = 64, least_rows = 8;
    std::int64_t first = INT64_MAX, end = 0;
    for (const Output &output : plan.outputs) {
        if (!output.spread)
            continue;
        const std::int32_t filter = program.source().objects[output.object].filter;
        Set read(program.size());
        for (const std::int32_t root : {program.source().items[output.item].value, filter})
            if (root >= 0)
                read.add(root);
        for (std::int32_t e = program.size() - 1; e >= 0; --e) {
            if (!read.has(e))
                continue;
            const PgkmExpression &x = program.at(e);
            for (int i = 0; i < arguments_of(x.operation); ++i)
                if (x.a[i] >= 0)
                    read.add(x.a[i]);
            if (x.operation == PGKM_COLUMN) {
                first = std::min(first, x.first);
                end = std::max(end, x.first + x.extent[0]);
            }
        }
    }
    if (first >= end)
        return;
    for (const std::int64_t words : {most_words / 2, most_words}) {
        std::int64_t rows = most_rows;
        while (rows * (end - first) > words - plan.shared_words && rows > 0)
            rows /= 2;
        if (rows < least_rows)
            continue;
        plan.stage = {rows, first, end - first, plan.shared_words};
        plan.shared_words += rows * (end - first);
        return;
    }
}

// Into parts of about equal length, and even, since no pair of words may be cut apart.
void cut(Plan &plan, std::int64_t most_words)
{
    constexpr std::int64_t most_parts = 65535; // of a grid
    most_words -= most_words % 2;
    const std::int64_t parts = (plan.words + most_words - 1) / most_words;
    if (parts > most_parts) {
        plan.layout = Layout::global;
        return;
    }
    plan.part_words = std::min(((plan.words + parts - 1) / parts + 1) / 2 * 2, most_words);
    plan.parts = static_cast<std::int32_t>((plan.words + plan.part_words - 1) / plan.part_words);
}

} // namespace

Device device_of_capability(std::int32_t capability)
{
    constexpr std::int64_t kb = 1024;
    switch (capability) {
    case 80:
    case 87:
        return {108, 163 * kb};
    case 86:
    case 89:
    case 120:
        return {84, 99 * kb};
    default:
        return {132, 227 * kb};
    }
}

bool Plan::has_spread() const
{
    return std::any_of(outputs.begin(), outputs.end(), [](const Output &output) { return output.spread; });
}

Layout choose_layout(const std::vector<Output> &outputs, std::int64_t rows, const Device &device)
{
    const std::int64_t most_words = device.shared_bytes / word_bytes;
    std::int64_t words = 0;
    for (const Output &output : outputs)
        words += output.size();
    // Copies of 256 threads that leave room for a second block.
    if (words <= most_words / 512 && thread_time(outputs, most_words / 256 / words) <= block_time(outputs))
        return Layout::thread_write_first;
    if (words <= most_words)
        return Layout::block;
    // Each part costs a read of the rows; adding up a block's copies must not cost more than the rows.
    const std::int64_t parts = (words + most_words - 1) / most_words;
    return parts <= 4 && rows >= 64 * words ? Layout::parts : Layout::global;
}

Plan make_plan(const Program &program, Layout forced, std::int64_t rows, const Device &device)
{
    Plan plan = {};
    const std::int64_t most_words = device.shared_bytes / word_bytes;
    plan.inputs = inputs_of(program);
    plan.outputs = outputs_of(program);
    plan.words = place_records(plan.outputs);
    spread_elements(program, plan.outputs);
    plan.layout = forced == Layout::automatic ? choose_layout(plan.outputs, rows, device) : forced;
    plan.parts = 1;
    plan.part_words = plan.words;
    plan.threads = std::min(256, device.threads);
    if (plan.is_per_thread()) {
        for (Output &output : plan.outputs)
            output.spread = false;
        plan.words = plan.part_words = place_arrays(plan.outputs);
        plan.threads = threads_per_copy(plan.words, most_words, device.threads);
        place_variables(plan, most_words);
        return plan;
    }
    if (plan.layout == Layout::block && plan.words > most_words)
        plan.layout = Layout::parts; // as near as can be
    if (plan.layout == Layout::parts)
        cut(plan, most_words);
    if (plan.layout != Layout::global)
        plan.shared_words = plan.part_words;
    if (plan.shared_words * 2 > most_words)
        plan.threads = device.threads; // one block a multiprocessor
    place_inputs(plan, plan.layout == Layout::global ? most_words / 4 : most_words);
    if (plan.layout == Layout::block)
        place_stage(plan, program, most_words);
    return plan;
}

std::uint64_t block_bytes(const Plan &plan)
{
    const std::int64_t copies = plan.has_copies() ? plan.words : 0;
    return static_cast<std::uint64_t>((copies + plan.own_words * plan.threads) * word_bytes);
}

std::int64_t choose_blocks(const Plan &plan, std::int64_t rows, const Device &device, std::uint64_t room)
{
    const std::int64_t most_words = device.shared_bytes / word_bytes;
    const std::int64_t resident =
        std::clamp<std::int64_t>(most_words / std::max<std::int64_t>(plan.shared_words, 1), 1, 2048 / plan.threads);
    std::int64_t blocks = device.multiprocessors * resident;
    blocks = std::max<std::int64_t>(blocks / plan.parts, 1);
    blocks = std::min(blocks, std::max<std::int64_t>((rows + plan.threads - 1) / plan.threads, 1));
    if (const std::uint64_t bytes = block_bytes(plan); bytes != 0)
        blocks = std::min(blocks, static_cast<std::int64_t>(room / bytes));
    return blocks;
}

} // namespace pgkm::generate
