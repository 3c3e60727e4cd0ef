// strategies.hpp - the strategies that a caller can force, in one table: plain data.
//
// The settings pg_kmeans.* list its names, each backend's strategies() and error texts take theirs from it, and
// code refers to an entry by its enumerator. To add a strategy: an enumerator and, in the same place, an entry.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgkm {

// What is chosen for a fit; each is a member of PgkmTuning.
enum class StrategyKind : std::uint8_t { assignment, execution, feature_sum, mass_sum, reduction_layout };
inline constexpr int strategy_kinds = 5;
inline constexpr const char *strategy_kind_names[strategy_kinds] = {"assignment", "execution", "feature_sum",
                                                                    "mass_sum", "reduction_layout"};

// How rows find their nearest centroids.
enum class Assignment : std::int8_t {
    automatic,
    direct,
    tiled,
    hamerly,
    register_,
    generic,
    tensor_core,
    register_constant,
    register_shared,
    register_global,
    generic_constant,
    distance_matrix
};
// How assignment and sums share the passes over the rows.
enum class Execution : std::int8_t {
    automatic,
    cross_processing,
    multi_pass,
    single_pass,
    serial_chunks,
    co_processing,
    round_trip
};
// How the features of each cluster are summed.
enum class FeatureSum : std::int8_t {
    automatic,
    cluster_merge,
    partitioned_features,
    ballot,
    divide_and_conquer,
    atomic,
    sorted,
    block_merge,
    staged_rows
};
// How the rows of each cluster are counted, or their weights summed.
enum class MassSum : std::int8_t {
    automatic,
    global_atomic,
    partitioned_global,
    partitioned_local,
    partitioned_private
};
// Where the variables of a user's reduction lie.
enum class ReductionLayout : std::int8_t {
    automatic,
    thread_no_sorting,
    thread_greedy,
    thread_write_first,
    block,
    global
};

template <typename Id>
inline constexpr StrategyKind kind_of{};
template <>
inline constexpr StrategyKind kind_of<Assignment> = StrategyKind::assignment;
template <>
inline constexpr StrategyKind kind_of<Execution> = StrategyKind::execution;
template <>
inline constexpr StrategyKind kind_of<FeatureSum> = StrategyKind::feature_sum;
template <>
inline constexpr StrategyKind kind_of<MassSum> = StrategyKind::mass_sum;
template <>
inline constexpr StrategyKind kind_of<ReductionLayout> = StrategyKind::reduction_layout;

// Backends, as bits.
inline constexpr unsigned on_cpu = 1, on_cuda = 2;

struct Strategy {
    template <typename Id>
    constexpr Strategy(Id enumerator, const char *its_name, unsigned where, const char *what,
                       const char *condition = "")
        : kind(kind_of<Id>), id(static_cast<int>(enumerator)), name(its_name), backends(where), description(what),
          requirement(condition)
    {
    }

    StrategyKind kind;
    int id;                  // the enumerator: 1 and up within its kind
    const char *name;        // as in settings
    unsigned backends;       // those that have it
    const char *description; // one line, without a full stop
    const char *requirement; // without it the backend takes another strategy; empty: none
};

// Ordered by kind, then by enumerator.
inline constexpr Strategy strategies[] = {
    {Assignment::direct, "direct", on_cpu, "exact distances to all centroids, one row in each vector lane"},
    {Assignment::tiled, "tiled", on_cpu | on_cuda,
     "a matrix product in tiles (float32 or, on CPUs, 16-bit integers) leaves few candidates, exact distances decide"},
    {Assignment::hamerly, "hamerly", on_cpu, "bounds kept from iteration to iteration spare most rows their distances"},
    {Assignment::register_, "register", on_cuda, "the row in registers, a float32 filter for float32 rows",
     "at most 16 features or 16 clusters"},
    {Assignment::generic, "generic", on_cuda, "exact distances to eight centroids at a time"},
    {Assignment::tensor_core, "tensor_core", on_cuda,
     "an fp16 matrix product on the tensor cores leaves few candidates, exact distances decide",
     "compute capability 8.0"},
    {Assignment::register_constant, "register_constant", on_cuda,
     "the row in registers, centroids in constant memory (Aggarwal 2013)", "at most 22 features"},
    {Assignment::register_shared, "register_shared", on_cuda,
     "the row in registers, centroids in shared memory (Aggarwal 2013)", "at most 22 features"},
    {Assignment::register_global, "register_global", on_cuda,
     "the row in registers, centroids in global memory (Li et al. 2010)", "at most 22 features"},
    {Assignment::generic_constant, "generic_constant", on_cuda,
     "exact distances, centroids in batches through constant memory (Aggarwal 2013)"},
    {Assignment::distance_matrix, "distance_matrix", on_cuda,
     "all distances are written to memory, a second kernel finds the least (Li et al. 2010)"},

    {Execution::cross_processing, "cross_processing", on_cuda, "the GPU assigns, the CPU sums (Lutz et al. 2018)"},
    {Execution::multi_pass, "multi_pass", on_cuda, "assignment and each sum read the rows by themselves"},
    {Execution::single_pass, "single_pass", on_cuda, "assignment and sums share one read of the rows",
     "rows without weights"},
    {Execution::serial_chunks, "serial_chunks", on_cuda,
     "multi_pass over chunks that come one after the other, none while kernels run (Li et al. 2010)", "streamed rows"},
    {Execution::co_processing, "co_processing", on_cuda,
     "the CPU takes a share of the streamed chunks where they lie (Lutz et al. 2018)", "streamed rows"},
    {Execution::round_trip, "round_trip", on_cuda,
     "multi_pass whose arrays go to the host and back between kernels; k-means++ draws on the host (O'Leary 2021)"},

    {FeatureSum::cluster_merge, "cluster_merge", on_cuda,
     "each thread sums all clusters of its rows, threads are merged at the end (Lutz et al. 2018)"},
    {FeatureSum::partitioned_features, "partitioned_features", on_cuda,
     "each thread owns a feature of all clusters (Lutz et al. 2018)"},
    {FeatureSum::ballot, "ballot", on_cuda,
     "each block sums one cluster, whose rows its warps find by ballot (Aggarwal 2013)"},
    {FeatureSum::divide_and_conquer, "divide_and_conquer", on_cuda,
     "sums of M rows, then of M sums until M are left, which the CPU adds (Li et al. 2010)"},
    {FeatureSum::atomic, "atomic", on_cuda, "one addition in global memory for each value (O'Leary 2021)"},
    {FeatureSum::sorted, "sorted", on_cuda, "rows are sorted by cluster, each run is one addition"},
    {FeatureSum::block_merge, "block_merge", on_cuda,
     "each block sums all clusters in shared memory, blocks are merged at the end"},
    {FeatureSum::staged_rows, "staged_rows", on_cuda,
     "a block brings its rows to shared memory, one thread sums them (O'Leary 2021)"},

    {MassSum::global_atomic, "global_atomic", on_cuda, "one addition in global memory for each row (Lutz et al. 2018)"},
    {MassSum::partitioned_global, "partitioned_global", on_cuda,
     "each block has masses of its own in global memory (Lutz et al. 2018)"},
    {MassSum::partitioned_local, "partitioned_local", on_cuda,
     "each block has masses of its own in shared memory (Lutz et al. 2018)"},
    {MassSum::partitioned_private, "partitioned_private", on_cuda,
     "each thread has masses of its own in shared memory (Lutz et al. 2018)"},

    {ReductionLayout::thread_no_sorting, "thread_no_sorting", on_cuda,
     "a copy of R a thread, variables in shared memory in the order of declaration (Ma, Agrawal 2009)"},
    {ReductionLayout::thread_greedy, "thread_greedy", on_cuda,
     "a copy of R a thread, variables in shared memory by increasing size (Ma, Agrawal 2009)"},
    {ReductionLayout::thread_write_first, "thread_write_first", on_cuda,
     "a copy of R a thread, variables in shared memory by increasing size, written ones first (Ma, Agrawal 2009)"},
    {ReductionLayout::block, "block", on_cuda, "a copy of R a block in shared memory, with atomics",
     "R in shared memory"},
    {ReductionLayout::global, "global", on_cuda, "one R in device memory, with atomics"},
};

constexpr bool strategies_are_in_order()
{
    int next[strategy_kinds] = {1, 1, 1, 1, 1}, last = 0;
    for (const Strategy &strategy : strategies) {
        const int kind = static_cast<int>(strategy.kind);
        if (kind < last || strategy.id != next[kind]++)
            return false;
        last = kind;
    }
    return true;
}
static_assert(strategies_are_in_order());

// The name of an enumerator, a static string; "auto" for automatic.
template <typename Id>
constexpr const char *name_of(Id id)
{
    for (const Strategy &strategy : strategies)
        if (strategy.kind == kind_of<Id> && strategy.id == static_cast<int>(id))
            return strategy.name;
    return "auto";
}

// The names that `backend` (one bit) has of a kind, by the kind's name: a static NULL-ended list without "auto".
// Empty for an unknown kind or NULL.
const char *const *strategy_names(unsigned backend, const char *kind) noexcept;

// The id of the strategy that a caller forces; 0 for NULL and "auto". Throws Error(PGKM_UNSUPPORTED), which lists
// what there is, where `backend` (one bit) does not have it.
int find_strategy(unsigned backend, StrategyKind kind, const char *name);

template <typename Id>
Id parse_strategy(unsigned backend, const char *name)
{
    return static_cast<Id>(find_strategy(backend, kind_of<Id>, name));
}

// Throws Error(PGKM_UNSUPPORTED): "the CPU backend has no KIND strategy "NAME"; it has: auto, ...", from a
// NULL-ended list without "auto".
[[noreturn]] void throw_no_strategy(unsigned backend, const char *kind, const char *name, const char *const *there);

} // namespace pgkm
