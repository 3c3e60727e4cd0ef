// layout.cpp (generate) - which variables there are, where each lies, how many threads and blocks.
#include "backend/generate/layout.hpp"

#include <algorithm>

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

// A variable that may lie in shared memory.
struct Variable {
    Input *input;
    Output *output;
    std::int64_t words;
};

// In the order of declaration, by size, or what is written first: the work's three orders. What does not fit any more
// is passed over and stays in device memory.
void place_variables(Plan &plan, std::int64_t most_words)
{
    std::vector<Variable> variables;
    for (Input &input : plan.inputs)
        variables.push_back({&input, nullptr, input.values()});
    for (Output &output : plan.words.outputs)
        if (plan.is_per_thread())
            variables.push_back({nullptr, &output, output.size() * plan.threads});
    std::stable_sort(variables.begin(), variables.end(), [&](const Variable &a, const Variable &b) {
        if (plan.layout == Layout::thread_write_first && (a.input == nullptr) != (b.input == nullptr))
            return a.input == nullptr;
        const bool sorts = plan.layout == Layout::thread_greedy || plan.layout == Layout::thread_write_first;
        return sorts && a.words < b.words;
    });
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

// Rows that all go to one cell would all change the same words at once. Where many elements are summed that cost
// little, each thread takes some elements of all the block's rows instead.
void deal_elements(const Program &program, Words &words)
{
    constexpr std::int64_t least_elements = 32;
    constexpr double most_cost = 64.0;
    for (Output &output : words.outputs) {
        const PgkmObject &object = program.source().objects[output.object];
        if (output.combine != PGKM_COMBINE_SUM || output.elements < least_elements || object.cell >= 0)
            continue;
        const double filter = object.filter < 0 ? 0.0 : program.facts(object.filter).cost;
        output.dealt = filter + program.facts(program.source().items[output.item].value).cost <= most_cost;
    }
}

// The columns that the program reads, of as many rows as leave room for a second block where there is one.
// Layout::global has none: each stage adds the totals to R, with atomics in device memory.
void place_stage(Plan &plan, const Program &program, std::int64_t most_words)
{
    constexpr std::int64_t most_rows = 64, least_rows = 8;
    std::int64_t first = INT64_MAX, end = 0;
    for (std::int32_t e = 0; e < program.size(); ++e)
        if (const PgkmExpression &x = program.at(e); x.operation == PGKM_COLUMN) {
            first = std::min(first, x.first);
            end = std::max(end, x.first + x.extent[0]);
        }
    for (const std::int64_t words : {most_words / 2, most_words}) {
        std::int64_t rows = first < end ? most_rows : 0;
        while (rows * (end - first) > words - plan.shared_words && rows > 0)
            rows /= 2;
        if (rows < least_rows)
            continue;
        plan.stage = {rows, first, end - first, plan.shared_words};
        plan.shared_words += rows * (end - first);
        return;
    }
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

// Sums of few words have a copy a thread: 256 of these leave room for a second block. Counts, least and greatest values
// alone hardly meet in a block's copy.
Layout choose_layout(const Words &words, const Device &device)
{
    const std::int64_t most_words = device.shared_bytes / word_bytes;
    const bool sums = std::any_of(words.outputs.begin(), words.outputs.end(),
                                  [](const Output &output) { return output.combine == PGKM_COMBINE_SUM; });
    std::int64_t size = 0;
    for (const Output &output : words.outputs)
        size += output.size();
    return sums && size <= most_words / 512 ? Layout::thread_write_first
           : size <= most_words             ? Layout::block
                                            : Layout::global;
}

Plan make_plan(const Program &program, Layout forced, const Device &device)
{
    const std::int64_t most_words = device.shared_bytes / word_bytes;
    const Words cells = words_of(program.source(), Arrangement::cells);
    Plan plan = {forced == Layout::automatic ? choose_layout(cells, device) : forced};
    plan.inputs = inputs_of(program);
    if (plan.is_per_thread()) {
        plan.words = words_of(program.source(), Arrangement::arrays);
        plan.threads = threads_per_copy(plan.words.count, most_words, device.threads);
        place_variables(plan, most_words);
        return plan;
    }
    plan.words = cells;
    deal_elements(program, plan.words);
    if (plan.words.count > most_words)
        plan.layout = Layout::global;
    plan.shared_words = plan.layout == Layout::block ? plan.words.count : 0;
    plan.threads = plan.shared_words * 2 > most_words ? device.threads : std::min(256, device.threads);
    place_variables(plan, plan.layout == Layout::block ? most_words : most_words / 4);
    if (plan.layout == Layout::block && std::any_of(plan.words.outputs.begin(), plan.words.outputs.end(),
                                                    [](const Output &output) { return output.dealt; }))
        place_stage(plan, program, most_words);
    return plan;
}

std::uint64_t block_bytes(const Plan &plan)
{
    const std::int64_t copies = plan.has_copies() ? plan.words.count : 0;
    return static_cast<std::uint64_t>((copies + plan.own_words * plan.threads) * word_bytes);
}

std::int64_t choose_blocks(const Plan &plan, std::int64_t rows, const Device &device, std::uint64_t room)
{
    const std::int64_t most_words = device.shared_bytes / word_bytes;
    const std::int64_t resident =
        std::clamp<std::int64_t>(most_words / std::max<std::int64_t>(plan.shared_words, 1), 1, 2048 / plan.threads);
    const std::int64_t blocks = std::min(device.multiprocessors * resident,
                                         std::max<std::int64_t>((rows + plan.threads - 1) / plan.threads, 1));
    const std::uint64_t bytes = block_bytes(plan);
    return bytes == 0 ? blocks : std::min(blocks, static_cast<std::int64_t>(room / bytes));
}

} // namespace pgkm::generate
