// loop_graph.cu - a graph of one conditional node, whose body is captured from a stream. The kernel that ends an
// iteration clears the node's handle when the fit stops.
#include "fit/loop_graph.hpp"

namespace pgkm::cuda {
namespace {

constexpr int unrolled = 8; // iterations per turn of the graph's loop

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

// Adds a loop whose body runs while `handle` is not 0, which it is not at first; returns the body.
cudaGraph_t add_loop(cudaGraph_t graph, cudaGraphConditionalHandle &handle)
{
    checked("cudaGraphConditionalHandleCreate",
            [&] { return cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault); });
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    cudaGraphNode_t node;
    checked("cudaGraphAddNode", [&] { return cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params); });
    return params.conditional.phGraph_out[0];
}

} // namespace

template <typename T>
void LoopGraph<T>::drop()
{
    exec_ = GraphExec();
    graph_ = Graph();
}

template <typename T>
void LoopGraph<T>::build(DeviceProblem<T> &problem, UpdateArguments<T> arguments)
{
    drop();
    checked("cudaGraphCreate", [&] { return cudaGraphCreate(graph_.out(), 0); });
    const cudaGraph_t body = add_loop(graph_.get(), arguments.handle);
    arguments.has_handle = true;
    capture(problem.stream(), body, [&] {
        for (int i = 0; i < unrolled; ++i)
            problem.iteration(arguments, arguments.control);
    });
    generation_ = problem.context.workspace_generation;
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
