// kernel.cpp (generate) - the kernels around process(): copies of R, the loop over rows, how copies come together.
#include "backend/generate/kernel.hpp"

#include <algorithm>

#include "backend/generate/helpers.hpp"
#include "backend/generate/spread.hpp"
#include "backend/generate/title.hpp"
#include "backend/generate/updates.hpp"

namespace pgkm::generate {
namespace {

using std::to_string;

const char *identity_of(const Output &output)
{
    return output.combine == PGKM_COMBINE_MIN || output.combine == PGKM_COMBINE_ARGMIN ? "~0ull" : "0ull";
}

// Word `from` joins word `to`, as statements; of a pair only its first word, from_second is that of the second ones.
std::string joined(const Output &output, const std::string &to, const std::string &from, const std::string &to_second,
                   const std::string &from_second)
{
    switch (output.combine) {
    case PGKM_COMBINE_SUM:
        return output.integer ? to + " += " + from + ";" : to + " = bits(value(" + to + ") + value(" + from + "));";
    case PGKM_COMBINE_COUNT:
        return to + " += " + from + ";";
    case PGKM_COMBINE_MIN:
        return to + " = min(" + to + ", " + from + ");";
    case PGKM_COMBINE_MAX:
        return to + " = max(" + to + ", " + from + ");";
    default:
        return "if (" + from + " < " + to + " || (" + from + " == " + to + " && " + from_second + " < " + to_second +
               ")) { " + to_second + " = " + from_second + "; " + to + " = " + from + "; }";
    }
}

class Kernels {
  public:
    Kernels(const Program &program, const Plan &plan, const Rows &rows) : program_(program), plan_(plan), rows_(rows) {}

    std::string source()
    {
        title(text_, plan_, rows_);
        constants();
        std::string all = text_.str() + helper_functions(plan_);
        text_ = {};
        text_.line();
        identity();
        parts();
        text_.line(
            "// One row: (i, v) = process(row); R[i] = R[i] op v. False: it failed, and R means nothing any more.");
        write_process(text_, program_, plan_, rows_);
        text_.line();
        write_spread(text_, program_, plan_, rows_);
        init();
        reduc();
        if (plan_.has_copies())
            combine();
        if (scale_count(plan_) > 0)
            magnitudes();
        return all + text_.str();
    }

  private:
    void constants()
    {
        text_.line(std::string("typedef ") + (rows_.float32 ? "float" : "double") + " Element;");
        text_.line("typedef unsigned long long Word;");
        text_.line("constexpr int threads = " + to_string(plan_.threads) + "; // of a block");
        text_.line("constexpr long long d = " + to_string(rows_.d) + "; // values of a row");
        text_.line("constexpr long long words = " + to_string(plan_.words) + "; // of R");
        if (plan_.layout == Layout::parts)
            text_.line("constexpr long long part_words = " + to_string(plan_.part_words) + "; // of each part of R");
        if (plan_.shared_words > 0) {
            text_.line();
            text_.line("extern __shared__ Word shared[];");
        }
    }

    // The output that word w belongs to, as conditions from the last output to the first.
    template <typename Write>
    void by_output(Write &&write)
    {
        for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
            const Output &output = plan_.outputs[i];
            const std::size_t end = i + 1;
            const bool last_of_object =
                plan_.is_per_thread() || end == plan_.outputs.size() || plan_.outputs[end].object != output.object;
            const Output &first = *std::find_if(plan_.outputs.begin(), plan_.outputs.end(), [&](const Output &other) {
                return plan_.is_per_thread() ? &other == &output : other.object == output.object;
            });
            if (&first == &output)
                text_.open(output.base == 0 ? "if (w < " + to_string(first.base + first.cells * first.stride) + ")"
                                            : "if (w >= " + to_string(output.base) + " && w < " +
                                                  to_string(first.base + first.cells * first.stride) + ")");
            const std::int64_t offset = output.base - first.base, size = output.elements * output.words;
            if (&first == &output && last_of_object) {
                write(output, "(w - " + to_string(output.base) + ") % " + to_string(output.stride));
            } else {
                if (&first == &output)
                    text_.line("const long long at = (w - " + to_string(output.base) + ") % " +
                               to_string(output.stride) + ";");
                text_.open("if (at >= " + to_string(offset) + " && at < " + to_string(offset + size) + ")");
                write(output, "(at - " + to_string(offset) + ")");
                text_.close();
            }
            if (last_of_object)
                text_.close();
        }
    }

    void identity()
    {
        text_.line("// What op leaves as it is, of word w of R.");
        text_.open("__device__ __forceinline__ Word identity(long long w)");
        if (std::any_of(plan_.outputs.begin(), plan_.outputs.end(),
                        [](const Output &output) { return identity_of(output)[0] == '~'; }))
            by_output([&](const Output &output, const std::string &) {
                text_.line("return " + std::string(identity_of(output)) + ";");
            });
        text_.line("return 0ull;");
        text_.close();
        text_.line();
    }

    void parts()
    {
        if (plan_.layout != Layout::parts)
            return;
        text_.line("// Of elements that begin at word `place` of this part: the first within it, and the one behind "
                   "the last.");
        text_.open("__device__ __forceinline__ int from_word(long long place, int size)");
        text_.line("return place >= 0 ? 0 : int((size - 1 - place) / size);");
        text_.close();
        text_.open("__device__ __forceinline__ int to_word(long long place, int size, int elements)");
        text_.line("const long long end = (part_words - place + size - 1) / size;");
        text_.line("return end < elements ? int(end) : elements;");
        text_.close();
        text_.line();
    }

    void init()
    {
        text_.line("// R without any row: a thread a word.");
        text_.open("extern \"C\" __global__ void init(Word *total)");
        text_.line("const long long w = (long long)blockIdx.x * blockDim.x + threadIdx.x;");
        text_.line("if (w < words)");
        text_.line("    total[w] = identity(w);");
        text_.close();
        text_.line();
    }

    void inputs(bool may_be_shared)
    {
        for (const Input &input : plan_.inputs) {
            const std::string from = "parameters + " + to_string(input.first);
            if (!may_be_shared || input.place < 0) {
                text_.line("const double *const " + input.name + " = " + from + ";");
                continue;
            }
            text_.line("double *const " + input.name + " = (double *)(shared + " + to_string(input.place) + ");");
            text_.line("for (int w = t; w < " + to_string(input.values()) + "; w += threads)");
            text_.line("    " + input.name + "[w] = parameters[" + to_string(input.first) + " + w];");
        }
    }

    // Operations, about.
    double row_cost() const
    {
        const auto cost = [&](std::int32_t e) { return e < 0 ? 0.0 : program_.facts(e).cost; };
        double all = 0.0;
        for (std::int32_t o = 0; o < program_.source().n_objects; ++o)
            all += cost(program_.source().objects[o].filter) + cost(program_.source().objects[o].cell);
        for (const Output &output : plan_.outputs)
            if (output.item >= 0)
                all += static_cast<double>(output.elements) * (1 + cost(program_.source().items[output.item].value) +
                                                               cost(program_.source().items[output.item].key));
        return all;
    }

    // device_reduc() of the work: the rows are dealt out to all threads.
    void loop(const std::string &function, bool measures)
    {
        const bool spread = !measures && plan_.has_spread(), often = spread || row_cost() > 4096;
        text_.line();
        text_.line("// device_reduc(): block by block of rows, a row a thread");
        if (!often)
            text_.line("int turn = 0; // every 16th asks whether to go on");
        text_.open("for (long long from = (long long)blockIdx.x * threads; from < count; "
                   "from += (long long)gridDim.x * threads)");
        text_.line("const long long r = from + t;");
        const std::string stop = "*(const volatile int *)stop != 0";
        if (plan_.stage.rows > 0 && spread) // all threads of a block or none
            text_.line("if (__syncthreads_or(" + stop + "))");
        else
            text_.line("if (" + std::string(often ? "" : "turn++ % 16 == 0 && ") + stop + ")");
        text_.line("    break;");
        text_.line("if (r < count && !" + function + ")");
        text_.line("    atomicMin(fault, Word(first + r));");
        if (spread)
            write_spread_loop(text_, program_, plan_);
        text_.close();
    }

    std::string call(const char *name, bool measures) const
    {
        std::string text = std::string(name) + "(rows + r * d";
        for (const Input &input : plan_.inputs)
            text += ", " + input.name;
        if (measures)
            return text + ", largest, stop)";
        if (scale_count(plan_) > 0)
            text += ", scales";
        if (plan_.is_per_thread()) {
            for (const Output &output : plan_.outputs)
                text += ", " + output.name;
            if (plan_.own_words > 0)
                text += ", all";
        } else {
            text += plan_.layout == Layout::parts ? ", R, first_word" : ", R";
        }
        return text + ", stop)";
    }

    void reduc()
    {
        text_.line("extern \"C\" __global__ void __launch_bounds__(threads)");
        text_.line("reduc(const Element *__restrict__ rows, long long first, long long count,");
        text_.line(
            "      const double *__restrict__ parameters, const double *__restrict__ scales, Word *own, Word *copies,");
        text_.line("      Word *fault, const int *stop)");
        text_.open("");
        text_.line("const int t = threadIdx.x;");
        inputs(true);
        if (plan_.is_per_thread())
            reduc_per_thread();
        else
            reduc_shared();
        text_.close();
        text_.line();
    }

    void reduc_per_thread()
    {
        if (plan_.own_words > 0)
            text_.line(
                "const long long all = (long long)gridDim.x * threads, me = (long long)blockIdx.x * threads + t;");
        text_.line();
        text_.line("// init(): this thread's copy of R");
        for (const Output &output : plan_.outputs) {
            const std::string step = output.shared ? "threads" : "all";
            text_.line("Word *const " + output.name + " = " +
                       (output.shared ? "shared + " + to_string(output.place) + " + t;"
                                      : "own + " + to_string(output.place) + " * all + me;"));
            text_.line("for (long long w = 0; w < " + to_string(output.size()) + "; ++w)");
            text_.line("    " + output.name + "[w * " + step + "] = " + identity_of(output) + ";");
        }
        text_.line("__syncthreads();");
        loop(call("process", false), false);
        text_.line("__syncthreads();");
        text_.line();
        text_.line("// combine(): of each word the copies of this block, by one thread");
        for (const Output &output : plan_.outputs)
            combine_threads(output);
    }

    void combine_threads(const Output &output)
    {
        const bool pair = output.combine == PGKM_COMBINE_ARGMIN;
        const std::string step = output.shared ? "threads" : "all", size = pair ? "2" : "1";
        text_.open("for (long long w = " + (pair ? std::string("t * 2") : "t") + "; w < " + to_string(output.size()) +
                   "; w += threads * " + size + ")");
        text_.line("const Word *const of = " + output.name + " - t + w * " + step + ";");
        text_.line("Word *const to = copies + blockIdx.x * words + " + to_string(output.base) + " + w;");
        text_.line("Word total = " + std::string(identity_of(output)) + (pair ? ", key = ~0ull;" : ";"));
        text_.open("for (int k = 0; k < threads; ++k)");
        text_.line("const int c = (t + k) % threads; // each thread another bank");
        text_.line(joined(output, "total", "of[c]", "key", "of[" + step + " + c]"));
        text_.close();
        text_.line("to[0] = total;");
        if (pair)
            text_.line("to[1] = key;");
        text_.close();
    }

    void reduc_shared()
    {
        if (plan_.layout == Layout::global) {
            text_.line("Word *const R = copies;");
            text_.line("__syncthreads();");
            return loop(call("process", false), false);
        }
        const bool cut = plan_.layout == Layout::parts;
        text_.line();
        text_.line("// init(): this block's copy of " + std::string(cut ? "its part of R" : "R"));
        text_.line("Word *const R = shared;");
        if (cut)
            text_.line("const long long first_word = blockIdx.y * part_words;");
        const std::string size = cut ? "part_words" : "words", w = cut ? "first_word + w" : "w";
        text_.line("for (long long w = t; w < " + size + "; w += threads)");
        text_.line("    R[w] = identity(" + w + ");");
        text_.line("__syncthreads();");
        loop(call("process", false), false);
        text_.line("__syncthreads();");
        text_.line();
        text_.line("for (long long w = t; w < " + size + (cut ? " && first_word + w < words" : "") + "; w += threads)");
        text_.line("    copies[blockIdx.x * words + " + w + "] = R[w];");
    }

    void combine()
    {
        text_.line("// combine(): of each word the copies of all blocks, in their order, by one thread, some reads at "
                   "a time.");
        text_.line("extern \"C\" __global__ void");
        text_.open("combine(const Word *__restrict__ copies, long long blocks, Word *__restrict__ total)");
        text_.line("const long long w = (long long)blockIdx.x * blockDim.x + threadIdx.x;");
        text_.line("if (w >= words)");
        text_.line("    return;");
        text_.line("Word sum = total[w];");
        by_output([&](const Output &output, const std::string &place) {
            const bool pair = output.combine == PGKM_COMBINE_ARGMIN;
            if (pair) {
                text_.line("if (" + place + " % 2 != 0)");
                text_.line("    return; // the key: its value's thread sees to both");
                text_.line("Word key = total[w + 1];");
            }
            text_.line("#pragma unroll 16");
            text_.open("for (long long b = 0; b < blocks; ++b)");
            text_.line("const Word of = copies[b * words + w];");
            if (pair)
                text_.line("const Word key_of = copies[b * words + w + 1];");
            text_.line(joined(output, "sum", "of", "key", "key_of"));
            text_.close();
            if (pair)
                text_.line("total[w + 1] = key;");
        });
        text_.line("total[w] = sum;");
        text_.close();
        text_.line();
    }

    void magnitudes()
    {
        text_.line("__device__ __forceinline__ void raise(Word *to, double x)");
        text_.open("");
        text_.line("const Word w = bits(fabs(x));");
        text_.line("if (w > *(volatile Word *)to)");
        text_.line("    atomicMax(to, w);");
        text_.close();
        text_.line();
        text_.line("// As process(), for the ranges of sums of integers.");
        write_measure(text_, program_, plan_, rows_);
        text_.line();
        text_.line("extern \"C\" __global__ void __launch_bounds__(threads)");
        text_.line("magnitudes(const Element *__restrict__ rows, long long first, long long count,");
        text_.line("           const double *__restrict__ parameters, Word *largest, Word *fault, const int *stop)");
        text_.open("");
        text_.line("const int t = threadIdx.x;");
        inputs(false);
        loop(call("measure", true), true);
        text_.close();
    }

    const Program &program_;
    const Plan &plan_;
    const Rows &rows_;
    Text text_;
};

} // namespace

std::int64_t scale_count(const Plan &plan)
{
    std::int64_t count = 0;
    for (const Output &output : plan.outputs)
        count += output.integer ? output.elements : 0;
    return count;
}

std::string kernel_source(const Program &program, const Plan &plan, const Rows &rows)
{
    return Kernels(program, plan, rows).source();
}

} // namespace pgkm::generate
