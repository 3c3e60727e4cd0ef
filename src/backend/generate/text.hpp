// text.hpp (generate) - source text that is being written: lines, indented by the blocks that are open.
#pragma once

#include <string>

namespace pgkm::generate {

class Text {
  public:
    void line(const std::string &text = "")
    {
        if (!text.empty())
            text_.append(static_cast<std::size_t>(depth_) * 4, ' ').append(text);
        text_ += '\n';
    }
    void open(const std::string &head)
    {
        line(head.empty() ? "{" : head + " {");
        ++depth_;
    }
    void close(const std::string &tail = "")
    {
        --depth_;
        line("}" + tail);
    }
    void raw(const std::string &text) { text_ += text; }
    std::size_t size() const { return text_.size(); }
    const std::string &str() const { return text_; }

  private:
    std::string text_;
    int depth_ = 0;
};

} // namespace pgkm::generate
