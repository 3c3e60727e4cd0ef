// upload.hpp - rows from the host's pageable memory to the device, and results back.
#pragma once

#include <cstddef>

#include "plugin/context.hpp"

namespace pgkm::cuda {

// Copies and waits. Large arrays go in pieces through page-locked buffers that several threads
// fill: the driver's own copy of pageable memory has one thread, far below what PCIe carries,
// and to page-lock rows that travel once costs more than to copy them. The buffers are kept for
// the process's next upload: in the GPU service they are made once.
//
// Throws Error; heeds the host's cancel between pieces.
void upload(Context &context, void *to, const void *from, std::size_t bytes);

// The other way, likewise: results of many rows, from the device or page-locked memory that it wrote.
void download(Context &context, void *to, const void *from, std::size_t bytes);

} // namespace pgkm::cuda
