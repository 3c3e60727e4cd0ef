// updates.cpp (generate) - how a row changes R, in each layout.
#include "backend/generate/updates.hpp"

#include <algorithm>
#include <vector>

namespace pgkm::generate {
namespace {

std::string plus(const std::string &a, std::int64_t b)
{
    return b == 0 ? a : a + " + " + std::to_string(b);
}

std::string times(const std::string &a, std::int64_t b)
{
    return b == 1 ? a : a + " * " + std::to_string(b);
}

class Process {
  public:
    Process(Text &text, const Program &program, const Plan &plan, const Rows &rows, bool measures)
        : text_(text), program_(program), plan_(plan), measures_(measures),
          expressions_(program, plan.inputs, rows.float32, text)
    {
        std::int64_t scales = 0;
        for (const Output &output : plan.outputs) {
            scales_.push_back(scales);
            scales += output.integer ? output.elements : 0;
        }
    }

    void write()
    {
        write_head();
        expressions_.evaluate(always());
        for (std::int32_t o = 0; o < program_.source().n_objects; ++o)
            write_object(o);
        text_.line("return true;");
        text_.close();
    }

  private:
    const PgkmObject &object(std::int32_t o) const { return program_.source().objects[o]; }
    const PgkmItem &item(const Output &output) const { return program_.source().items[output.item]; }
    // Whether this function changes it.
    bool is_here(const Output &output) const { return measures_ ? output.integer : !output.spread; }
    // Whether items belong to a branch: their cell may lie in another part.
    bool has_parts() const { return !measures_ && plan_.layout == Layout::parts; }

    void write_head()
    {
        std::string head = std::string("__device__ __forceinline__ bool ") + (measures_ ? "measure" : "process") +
                           "(const Element *__restrict__ row";
        for (const Input &input : plan_.inputs)
            head += ", const double *__restrict__ " + input.name;
        if (measures_) {
            head += ", Word *largest";
        } else {
            if (scale_count(plan_) > 0)
                head += ", const double *__restrict__ scales";
            if (plan_.is_per_thread()) {
                for (const Output &output : plan_.outputs)
                    head += ", Word *" + output.name;
                if (plan_.own_words > 0)
                    head += ", long long all";
            } else {
                head += has_parts() ? ", Word *R, long long first_word" : ", Word *R";
            }
        }
        text_.line(head + ", const volatile int *stop)");
        text_.open("");
    }

    // What each of the object's items needs outside of its loop.
    void add_items(Set &needed, std::int32_t o) const
    {
        for (const Output &output : plan_.outputs) {
            if (output.object != o || output.item < 0 || !is_here(output) || output.elements == 0)
                continue;
            needed |= expressions_.outside(item(output).value, item(output).loop);
            if (output.combine == PGKM_COMBINE_ARGMIN)
                needed |= expressions_.outside(item(output).key, item(output).loop);
        }
    }

    // What every row needs.
    Set always() const
    {
        Set needed(program_.size());
        for (std::int32_t o = 0; o < program_.source().n_objects; ++o) {
            if (object(o).filter >= 0) {
                needed |= program_.facts(object(o).filter).needed;
                continue;
            }
            if (object(o).cell >= 0)
                needed |= program_.facts(object(o).cell).needed;
            if (!has_parts())
                add_items(needed, o);
        }
        return needed;
    }

    void write_object(std::int32_t o)
    {
        const PgkmObject &own = object(o);
        const std::string number = std::to_string(o);
        text_.line();
        text_.line("// R " + number + ": " + std::to_string(own.cells) + (own.cells == 1 ? " cell" : " cells"));
        if (own.filter >= 0) {
            expressions_.finite_number(own.filter);
            expressions_.open("if (" + expressions_.truth(own.filter) + ")");
            Set needed(program_.size());
            if (own.cell >= 0)
                needed |= program_.facts(own.cell).needed;
            if (!has_parts())
                add_items(needed, o);
            expressions_.evaluate(needed);
        }
        cell_ = own.cell < 0 ? "0" : "cell" + number;
        if (own.cell >= 0)
            expressions_.place(cell_, "long long", own.cell, own.cells);
        if (has_parts())
            write_part(o);
        else
            write_items(o);
        if (own.filter >= 0)
            expressions_.close();
    }

    // The cell's record lies in this part as a whole, to some of its words, or not at all.
    void write_part(std::int32_t o)
    {
        const Output &rows = *std::find_if(plan_.outputs.begin(), plan_.outputs.end(),
                                           [&](const Output &output) { return output.object == o; });
        at_ = "at" + std::to_string(o);
        text_.line("const long long " + at_ + " = " + plus(times(cell_, rows.stride), rows.base) + " - first_word;");
        expressions_.open("if (" + at_ + " < part_words && " + at_ + " + " + std::to_string(rows.stride) + " > 0)");
        Set needed(program_.size());
        add_items(needed, o);
        expressions_.evaluate(needed);
        record_ = rows.base;
        write_items(o);
        expressions_.close();
    }

    void write_items(std::int32_t o)
    {
        for (const Output &output : plan_.outputs) {
            if (output.object != o || !is_here(output) || output.elements == 0)
                continue;
            if (output.item < 0)
                write_count(output);
            else if (item(output).loop < 0)
                write_single(output);
            else
                write_elements(output);
        }
    }

    void write_count(const Output &output)
    {
        if (measures_)
            return;
        guarded(output, "", [&] {
            const bool all = output.cells == 1 && !plan_.is_per_thread();
            text_.line((all ? "count_all(" : "count(") + address(output, "") + ");");
        });
    }

    void write_single(const Output &output)
    {
        // Values first: a row that fails does so in every part that looks at its record.
        const std::string arguments = values(output);
        guarded(output, "", [&] { change(output, "", arguments); });
    }

    void write_elements(const Output &output)
    {
        const PgkmItem &from = item(output);
        const std::string i = "i" + std::to_string(from.loop);
        const double cost = program_.facts(from.value).cost;
        if (has_parts()) {
            const std::string place = plus(at_, output.base - record_), words = std::to_string(output.words);
            expressions_.open_loop(from.loop, cost, "from_word(" + place + ", " + words + ")",
                                   "to_word(" + place + ", " + words + ", " + std::to_string(output.elements) + ")");
        } else {
            expressions_.open_loop(from.loop, cost);
        }
        Set needed = program_.facts(from.value).needed;
        if (output.combine == PGKM_COMBINE_ARGMIN)
            needed |= program_.facts(from.key).needed;
        expressions_.evaluate(needed);
        change(output, i, values(output));
        expressions_.close();
    }

    // Of one word or pair: whether it lies in this part.
    template <typename Write>
    void guarded(const Output &output, const std::string &i, Write &&write)
    {
        if (!has_parts())
            return write();
        const std::string place = plus(at_, output.base - record_) + (i.empty() ? "" : " + " + times(i, output.words));
        text_.open("if (" + place + " >= 0 && " + place + " < part_words)");
        write();
        text_.close();
    }

    std::string values(const Output &output)
    {
        const PgkmItem &from = item(output);
        std::string text = expressions_.finite_number(from.value);
        if (output.combine == PGKM_COMBINE_ARGMIN)
            text += ", " + expressions_.finite_number(from.key);
        return text;
    }

    // The address of the first word of an element, and what lies between it and the second one.
    std::string address(const Output &output, const std::string &i) const
    {
        if (has_parts())
            return "R + " + plus(at_, output.base - record_) + (i.empty() ? "" : " + " + times(i, output.words));
        std::string at;
        const auto add = [&](const std::string &term) { at += (at.empty() ? "" : " + ") + term; };
        if (!plan_.is_per_thread() && output.base != 0)
            add(std::to_string(output.base));
        if (cell_ != "0")
            add(times(cell_, output.stride));
        if (!i.empty())
            add(times(i, output.words));
        if (!plan_.is_per_thread())
            return at.empty() ? "R" : "R + " + at;
        return at.empty() ? output.name : output.name + " + (" + at + ") * " + (output.shared ? "threads" : "all");
    }
    std::string second(const Output &output) const
    {
        return !plan_.is_per_thread() ? "1" : output.shared ? "threads" : "all";
    }

    void change(const Output &output, const std::string &i, const std::string &arguments)
    {
        const std::string scale =
            plus(i.empty() ? "0" : i, scales_[static_cast<std::size_t>(&output - plan_.outputs.data())]);
        if (measures_)
            return text_.line("raise(largest + " + scale + ", " + arguments + ");");
        const std::string to = address(output, i);
        switch (output.combine) {
        case PGKM_COMBINE_SUM:
            if (output.integer)
                return text_.line("add_integer(" + to + ", " + second(output) + ", " + arguments + ", scales[" + scale +
                                  "]);");
            return text_.line("add(" + to + ", " + arguments + ");");
        case PGKM_COMBINE_MIN:
            return text_.line("least(" + to + ", " + arguments + ");");
        case PGKM_COMBINE_MAX:
            return text_.line("greatest(" + to + ", " + arguments + ");");
        default:
            return text_.line("argmin(" + to + ", " + second(output) + ", " + arguments + ");");
        }
    }

    Text &text_;
    const Program &program_;
    const Plan &plan_;
    bool measures_;
    Expressions expressions_;
    std::vector<std::int64_t> scales_; // of each output: its first entry
    std::string cell_, at_;            // names of the cell and, in parts, of its record's place
    std::int64_t record_ = 0;          // word of the object's first record
};

} // namespace

void write_process(Text &text, const Program &program, const Plan &plan, const Rows &rows)
{
    Process(text, program, plan, rows, false).write();
}

void write_measure(Text &text, const Program &program, const Plan &plan, const Rows &rows)
{
    Process(text, program, plan, rows, true).write();
}

} // namespace pgkm::generate
