// SPDX-License-Identifier: Apache-2.0
//
// The large blocks of a program's malloc, in memory that the other processes of the node can map:
// one memfd, mapped once, at whose pages nothing changes but by the program. Thread-safe.
#pragma once

#include <cstddef>

namespace carillon::heap {

/// Shorter blocks are the C library's.
inline constexpr std::size_t kLargeBytes = 64 << 10;

/// Null: the block is to come from elsewhere. `alignment` is a power of two.
void* allocate(std::size_t bytes, std::size_t alignment, bool cleared);
/// Does the block come from here? Any pointer may be asked about.
bool owns(const void* memory);
/// Of one that does; ends the process if no block begins there.
std::size_t usable_bytes(void* memory);
void release(void* memory);
/// In its place; false: there is no room.
bool resize(void* memory, std::size_t bytes);
/// Gives the memory of free blocks back to the system. Did it give any?
bool trim();

}  // namespace carillon::heap

extern "C" {

/// For the interposer: where the heap is, and the file behind it, that other processes may map.
/// Nonzero: there is none. A child of fork has none.
int carillon_heap_region(void** base, std::size_t* bytes, int* fd);

/// And that a collective uses memory: the block that the address is in, if it is one of the heap's,
/// is given to nobody else until the pin is taken out, though it be freed; then `say` is called
/// with the pin's tag, by the thread that frees. A negative number: there is no pin.
int carillon_heap_pin(const void* address, unsigned tag);
void carillon_heap_unpin(int number);
void carillon_heap_say_freed(void (*say)(unsigned tag));
}
