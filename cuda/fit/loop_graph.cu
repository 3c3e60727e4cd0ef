#include "fit/loop_graph.hpp"

namespace pgkm::cuda {
namespace {

constexpr int unrolled = 8; // iterations per turn of the graph's loop

// A node of a graph, behind `after` (or nullptr), that runs its body while, or if, a handle's value is not 0. The
// value is `initially` whenever the graph is launched; kernels set it.
struct Conditional {
    cudaGraphConditionalHandle handle{};
    cudaGraphNode_t            node{};
    cudaGraph_t                body{};

    Conditional(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalNodeType type, unsigned initially)
    {
        checked("cudaGraphConditionalHandleCreate", [&] {
            return cudaGraphConditionalHandleCreate(&handle, graph, initially, cudaGraphCondAssignDefault);
        });
        cudaGraphNodeParams params = {};
        params.type = cudaGraphNodeTypeConditional;
        params.conditional.handle = handle;
        params.conditional.type = type;
        params.conditional.size = 1;
        checked("cudaGraphAddNode", [&] {
            return cudaGraphAddNode(&node, graph, &after, nullptr, after == nullptr ? 0 : 1, &params);
        });
        body = params.conditional.phGraph_out[0];
    }
};

// What `enqueue` puts into the stream becomes the graph's.
template <typename Enqueue>
void capture(cudaStream_t stream, cudaGraph_t graph, Enqueue &&enqueue)
{
    checked("cudaStreamBeginCaptureToGraph", [&] {
        return cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal);
    });
    try {
        enqueue();
        checked("cudaStreamEndCapture", [&] { return cudaStreamEndCapture(stream, &graph); });
    } catch (...) {
        cudaGraph_t abandoned;
        cudaStreamEndCapture(stream, &abandoned);
        cudaGetLastError(); // that a capture is not valid must not be found again by the next check
        throw;
    }
}

// After iterations have stopped: all goes on only where a cluster is empty.
__global__ void turn_kernel(const Control *control, cudaGraphConditionalHandle turns,
                            cudaGraphConditionalHandle iterations, cudaGraphConditionalHandle relocation)
{
    const unsigned goes_on = *const_cast<const volatile std::int32_t *>(&control->stop) == empty_cluster ? 1 : 0;
    cudaGraphSetConditional(turns, goes_on);
    cudaGraphSetConditional(iterations, goes_on);
    cudaGraphSetConditional(relocation, goes_on);
}

cudaGraphNode_t add_turn(cudaGraph_t graph, cudaGraphNode_t after, const Control *control,
                         cudaGraphConditionalHandle turns, cudaGraphConditionalHandle iterations,
                         cudaGraphConditionalHandle relocation)
{
    void *arguments[] = {&control, &turns, &iterations, &relocation};
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = reinterpret_cast<void *>(turn_kernel);
    params.kernel.gridDim = dim3(1);
    params.kernel.blockDim = dim3(1);
    params.kernel.kernelParams = arguments;
    cudaGraphNode_t added;
    checked("cudaGraphAddNode", [&] { return cudaGraphAddNode(&added, graph, &after, nullptr, 1, &params); });
    return added;
}

template <typename T>
void capture_iterations(Job<T> &job, UpdateArguments<T> arguments, const Conditional &loop)
{
    arguments.has_handle = true;
    arguments.handle = loop.handle;
    capture(job.stream(), loop.body, [&] {
        for (int i = 0; i < unrolled; ++i)
            job.iteration(arguments, arguments.control);
    });
}

} // namespace

template <typename T>
void LoopGraph<T>::drop()
{
    exec_ = GraphExec();
    graph_ = Graph();
}

template <typename T>
void LoopGraph<T>::build(Job<T> &job, UpdateArguments<T> arguments, Tournament<T> *relocation)
{
    drop();
    checked("cudaGraphCreate", [&] { return cudaGraphCreate(graph_.out(), 0); });
    const Conditional turns(graph_.get(), nullptr, cudaGraphCondTypeWhile, 1);
    if (relocation == nullptr) {
        capture_iterations(job, arguments, turns);
    } else {
        const Conditional loop(turns.body, nullptr, cudaGraphCondTypeWhile, 1);
        capture_iterations(job, arguments, loop);
        // The turn's kernel sets the handle of the node behind it: that node first, its edge last.
        const Conditional relocates(turns.body, nullptr, cudaGraphCondTypeIf, 0);
        const cudaGraphNode_t turn =
            add_turn(turns.body, loop.node, arguments.control, turns.handle, loop.handle, relocates.handle);
        checked("cudaGraphAddDependencies",
                [&] { return cudaGraphAddDependencies(turns.body, &turn, &relocates.node, nullptr, 1); });
        arguments.has_handle = true;
        arguments.handle = turns.handle;
        capture(job.stream(), relocates.body, [&] { relocation->enqueue(arguments); });
    }
    generation_ = job.context.workspace_generation;
    checked("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(exec_.out(), graph_.get(), 0); });
}

template <typename T>
void LoopGraph<T>::launch(cudaStream_t stream)
{
    checked("cudaGraphLaunch", [&] { return cudaGraphLaunch(exec_.get(), stream); });
}

template class LoopGraph<float>;
template class LoopGraph<double>;

} // namespace pgkm::cuda
