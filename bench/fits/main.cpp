// fits - whole fits by wall clock, on a GPU or the CPU, beside other libraries on the same rows.
//
//   fits [--plugin build/pg_kmeans_cuda.so] [--threads N]    the GPU (or, without a plugin, the CPU)
//        [--only TEXT]... [--from NUMBER] [--seconds S]      lines whose name has one of the texts; from that line on;
//                                                            none begins later than S seconds after the start
//        [--line KIND,NxD,K]... [--file FILE.npy:K]... [--file FILE:NxD:K]...    these instead of the usual lines
//        [--seeding k-means++,k-means||,random] [--whole 1]  seedings; a fit with default options, from loading to
//        labels
//        [--inits SEEDS]                                     instead, whole fits with k-means++ and k-means||:
//        inits.hpp
//        [--peer flash|sklearn|superkmeans]...               beside peers.py (PYTHON names the interpreter)
//        [--repeats N] [--seed N] [--csv FILE] [--list 1]
//        [--devices 0,1]      each fit is spread over these GPUs, of which the same one may come again
//        [--strategies 1]     the same by each strategy of each stage, and no more of one than a fit that takes 5 s
//        [--assignment NAME] [--execution NAME] [--feature-sum NAME] [--mass-sum NAME] [--instruction-set NAME]
//
// T20 is the call of a fit of 20 iterations, or until labels rest, from k random rows with tol 0; T1 that of one
// iteration: all between the call and its return, on rows that were just loaded. Both are medians of three repeats at
// least after some that do not count; their range stands beside them. A peer runs as many iterations. `again` is T20 on
// rows that a fit had before, as in a restart; `first` that of the first fit after the backend was opened. labels: the
// assignment to the last centroids with its sums of squares, brought to the host. Seedings and whole fits longer than 5
// s are run once. The CSV has more columns. Real sets: datasets.py.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>

#include "cpu/cpu_backend.hpp"
#include "service/plugin.hpp"
#include "inits.hpp"
#include "report.hpp"

namespace {

using Options = std::map<std::string, std::vector<std::string>>;

constexpr const char *known[] = {
    "plugin",   "threads",         "only",    "from", "seconds", "line",       "file",       "seeding",   "whole",
    "peer",     "repeats",         "seed",    "csv",  "list",    "strategies", "assignment", "execution", "feature-sum",
    "mass-sum", "instruction-set", "devices", "inits"};

Options parse(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        const auto is_name = [&](const char *each) { return name == std::string("--") + each; };
        if (i + 1 == argc || std::none_of(std::begin(known), std::end(known), is_name))
            throw std::runtime_error(name + " is no option, or has no value");
        options[name.substr(2)].push_back(argv[i + 1]);
    }
    return options;
}

std::string last(const Options &options, const std::string &name, const std::string &otherwise = "")
{
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second.back();
}

std::vector<std::string> all(const Options &options, const std::string &name)
{
    const auto found = options.find(name);
    return found == options.end() ? std::vector<std::string>{} : found->second;
}

PgkmSettings settings_of(const Options &options)
{
    PgkmSettings settings = {};
    settings.device = -1;
    settings.backend = options.count("plugin") != 0 ? PGKM_BACKEND_CUDA : PGKM_BACKEND_CPU;
    settings.cpu_threads = std::stoi(last(options, "threads", "0"));
    const auto text = [&](const char *name) {
        const auto found = options.find(name);
        return found == options.end() ? nullptr : found->second.back().c_str();
    };
    settings.plugin = text("plugin");
    std::istringstream devices(last(options, "devices"));
    for (std::string device; std::getline(devices, device, ',') && settings.n_devices < PGKM_MOST_DEVICES;)
        settings.devices[settings.n_devices++] = std::stoi(device);
    settings.tuning = {text("assignment"), text("execution"), text("feature-sum"),
                       text("mass-sum"),   nullptr,           text("instruction-set")};
    return settings;
}

bench::Wanted wanted_of(const Options &options)
{
    bench::Wanted wanted;
    wanted.repeats = std::max(3, std::stoi(last(options, "repeats", "3")));
    wanted.seed = std::stoull(last(options, "seed", "1"));
    wanted.whole = last(options, "whole", "0") != "0";
    if (last(options, "strategies", "0") != "0")
        wanted.most_ms = 5000.0;
    const std::string names = "," + last(options, "seeding") + ",";
    const std::pair<const char *, PgkmInit> inits[] = {{",k-means++,", PGKM_INIT_KMEANS_PLUS_PLUS},
                                                       {",k-means||,", PGKM_INIT_KMEANS_PARALLEL},
                                                       {",random,", PGKM_INIT_RANDOM}};
    for (const auto &[name, init] : inits)
        if (names.find(name) != std::string::npos)
            wanted.seedings.push_back(init);
    return wanted;
}

std::vector<bench::Line> lines_of(const Options &options)
{
    std::vector<bench::Line> lines;
    for (const std::string &text : all(options, "line"))
        lines.push_back(bench::parse_line(text));
    for (const std::string &text : all(options, "file"))
        lines.push_back(bench::parse_file(text));
    if (lines.empty())
        lines = options.count("plugin") != 0 ? bench::gpu_lines() : bench::cpu_lines();
    return lines;
}

bool is_wanted(const bench::Line &line, const std::vector<std::string> &texts)
{
    const auto has = [&](const std::string &text) { return line.name().find(text) != std::string::npos; };
    return texts.empty() || std::any_of(texts.begin(), texts.end(), has);
}

// The lines that are wanted, one after the other, until the time is up.
class Run {
  public:
    Run(const Options &options, const char *program)
        : options_(options), settings_(settings_of(options)), wanted_(wanted_of(options)),
          report_(last(options, "csv"), settings_.backend == PGKM_BACKEND_CUDA)
    {
        const std::string folder(program, std::string(program).rfind('/') + 1);
        // From build/bench, or beside the program.
        std::string script = folder + "../../bench/fits/peers.py";
        if (FILE *there = std::fopen(script.c_str(), "r"))
            std::fclose(there);
        else
            script = folder + "peers.py";
        for (const std::string &name : all(options, "peer")) {
            auto peer = std::make_unique<bench::Peer>(name, script, rows_.file(), settings_.cpu_threads);
            if (peer->version().empty())
                continue;
            std::printf("# %s\n", peer->version().c_str());
            peers_.push_back(std::move(peer));
        }
    }

    void lines()
    {
        name_device();
        const std::vector<bench::Line> lines = lines_of(options_);
        const double most = std::stod(last(options_, "seconds", "1e9"));
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t i = std::stoul(last(options_, "from", "1")); i <= lines.size(); ++i) {
            if (!is_wanted(lines[i - 1], all(options_, "only")))
                continue;
            if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > most) {
                std::printf("# the time is up: go on with --from %zu\n", i);
                return;
            }
            line(lines[i - 1]);
        }
    }

  private:
    static const PgkmBackend *table_of(const PgkmSettings &settings)
    {
        return settings.backend == PGKM_BACKEND_CUDA ? pgkm::cuda_backend(settings.plugin, nullptr)
                                                     : pgkm::cpu_backend();
    }

    void name_device() const
    {
        PgkmBackendStatus lines[16];
        const int count = std::min(16, pgkm_status(&settings_, lines, 16));
        for (const PgkmBackendStatus &line : std::span(lines, static_cast<std::size_t>(count)))
            if (line.available != 0 &&
                (line.backend == std::string("cuda")) == (settings_.backend == PGKM_BACKEND_CUDA))
                std::printf("# %s: %s\n", line.backend, line.device.name);
        std::fflush(stdout);
    }

    void line(const bench::Line &line)
    {
        try {
            rows_.fill(line, wanted_.seed);
            if (const int seeds = std::stoi(last(options_, "inits", "0")); seeds > 0) {
                bench::compare_inits(line, rows_, settings_, seeds);
                rows_.clear();
                return;
            }
            const bench::Figures figures = bench::measure(line, rows_, settings_, wanted_);
            std::vector<bench::Beside> beside;
            for (const auto &peer : peers_) {
                beside.push_back({peer->name(), peer->fit(line, figures.iterations, wanted_.repeats), {}});
                if (wanted_.whole)
                    beside.back().whole = peer->whole(line, wanted_.repeats);
            }
            report_.print(line, figures, beside);
            if (last(options_, "strategies", "0") != "0")
                strategies(line, beside);
        } catch (const std::exception &error) { // the other lines are worth having
            std::printf("# %s: %s\n", line.name().c_str(), error.what());
            std::fflush(stdout);
            failed = true;
        }
        rows_.clear();
    }

    // Each strategy of each stage, while the others choose for themselves.
    void strategies(const bench::Line &line, const std::vector<bench::Beside> &beside)
    {
        const std::pair<const char *, const char * PgkmTuning::*> stages[] = {{"execution", &PgkmTuning::execution},
                                                                              {"assignment", &PgkmTuning::assignment},
                                                                              {"feature_sum", &PgkmTuning::feature_sum},
                                                                              {"mass_sum", &PgkmTuning::mass_sum}};
        for (const auto &[stage, member] : stages)
            for (const char *const *name = table_->strategies(stage); *name != nullptr; ++name) {
                PgkmSettings forced = settings_;
                forced.tuning.*member = *name;
                try {
                    bench::Figures figures = bench::measure(line, rows_, forced, wanted_);
                    figures.forced = std::string(stage) + " " + *name;
                    report_.print(line, figures, beside);
                } catch (const std::exception &error) { // it does not take the shape
                    std::printf("  %s %s: %s\n", stage, *name, error.what());
                }
            }
    }

    const Options &options_;
    const PgkmSettings settings_;
    const PgkmBackend *table_ = table_of(settings_);
    const bench::Wanted wanted_;
    bench::Rows rows_;
    bench::Report report_;
    std::vector<std::unique_ptr<bench::Peer>> peers_;

  public:
    bool failed = false;
};

} // namespace

int main(int argc, char **argv)
{
    std::signal(SIGPIPE, SIG_IGN); // a peer that has died gives no answer
    try {
        const Options options = parse(argc, argv);
        if (options.count("list") != 0) {
            int number = 0;
            for (const bench::Line &line : lines_of(options))
                std::printf("%d %s\n", ++number, line.name().c_str());
            return 0;
        }
        Run run(options, argv[0]);
        run.lines();
        return run.failed ? 1 : 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "fits: %s\n", error.what());
        return 1;
    }
}
