// leaves_tree.cuh - the k-d tree by which rows are ordered (leaves.hpp): made of a sample, in up to three stages of six
// levels.
//
// A node is a word: a threshold whose lowest four bits are the number of its feature. A stage's subtree has 64 words,
// from word 1 on; the children of word i are words 2 i and 2 i + 1. Any tree gives an order that is right.
#pragma once

#include <cstdint>

#include "device/load_row.cuh"
#include "fused/leaves.hpp"

namespace pgkm::cuda {

inline constexpr int tree_stages = 3;
inline constexpr int stage_levels = 6;
inline constexpr int subtree_words = 1 << stage_levels;
inline constexpr int cached_words = subtree_words * (1 + subtree_words); // of the first two stages

// Where a stage's subtrees begin.
__host__ __device__ constexpr int stage_begin(int stage)
{
    return stage == 0 ? 0 : stage == 1 ? subtree_words : cached_words;
}

struct Tree {
    std::uint32_t *words;
    int levels[tree_stages];
    int stages; // made so far
};

// float32 values as integers of the same order.
__host__ __device__ inline std::int32_t ordered_bits(std::int32_t bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

// The words of the first two stages in shared memory, by the whole block.
__device__ inline void cache_tree(const Tree &tree, std::uint32_t *cached)
{
    const int count = tree.stages < 2 ? subtree_words : cached_words;
    for (int i = static_cast<int>(threadIdx.x); i < count && tree.stages > 0; i += static_cast<int>(blockDim.x))
        cached[i] = tree.words[i];
    __syncthreads();
}

// The number of the node that a row comes to. value(f): its feature f.
template <typename Value>
__device__ inline int descend(const Tree &tree, const std::uint32_t *cached, const Value &value)
{
    int node = 0;
    for (int stage = 0; stage < tree.stages; ++stage) {
        const int first = stage_begin(stage) + node * subtree_words;
        int at = 1;
        for (int level = 0; level < tree.levels[stage]; ++level) {
            const std::uint32_t word = stage < 2 ? cached[first + at] : __ldg(tree.words + first + at);
            at = 2 * at + (value(static_cast<int>(word & 15)) >= __uint_as_float(word & ~15u) ? 1 : 0);
        }
        node = (node << tree.levels[stage]) + at - (1 << tree.levels[stage]);
    }
    return node;
}

} // namespace pgkm::cuda
