// peer.cpp - starts peers.py, and speaks with it through two pipes.
#include "peer.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {
namespace {

std::string read_line(FILE *from)
{
    std::string line;
    for (int c = std::fgetc(from); c != EOF && c != '\n'; c = std::fgetc(from))
        line.push_back(static_cast<char>(c));
    return line;
}

} // namespace

Peer::Peer(const std::string &name, const std::string &script, int rows, int threads) : name_(name)
{
    int down[2], up[2];
    // Without O_CLOEXEC a second child would hold the first one's pipes open.
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        throw std::runtime_error("pipe2 failed");
    const char *python = std::getenv("PYTHON") == nullptr ? "python3" : std::getenv("PYTHON");
    const std::string file = std::to_string(rows), count = std::to_string(threads);
    child_ = fork();
    if (child_ == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execlp(python, python, script.c_str(), name.c_str(), file.c_str(), count.c_str(), nullptr);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    to_ = fdopen(down[1], "w");
    from_ = fdopen(up[0], "r");
    version_ = read_line(from_);
}

Peer::~Peer()
{
    std::fclose(to_); // it ends at the end of its input
    std::fclose(from_);
    waitpid(child_, nullptr, 0);
}

std::vector<double> Peer::ask(const std::string &question, std::size_t answers)
{
    std::fprintf(to_, "%s\n", question.c_str());
    std::fflush(to_);
    std::istringstream line(read_line(from_));
    std::vector<double> values;
    for (std::string word; line >> word;)
        values.push_back(std::strtod(word.c_str(), nullptr)); // "nan", too
    if (values.size() != answers)
        values.clear(); // it has said what went wrong
    return values;
}

std::optional<Peer::Fits> Peer::fit(const Line &line, int iterations, int repeats)
{
    std::ostringstream question;
    question << "fit " << line.n << ' ' << line.d << ' ' << line.k << ' ' << repeats << ' ' << iterations;
    const std::vector<double> v = ask(question.str(), 5);
    if (v.empty())
        return {};
    return Fits{v[0], v[1], v[2], v[3], v[4]};
}

std::optional<Peer::Whole> Peer::whole(const Line &line, int repeats)
{
    std::ostringstream question;
    question << "whole " << line.n << ' ' << line.d << ' ' << line.k << ' ' << repeats;
    const std::vector<double> v = ask(question.str(), 3);
    if (v.empty())
        return {};
    return Whole{v[0], v[1], v[2]};
}

} // namespace bench
