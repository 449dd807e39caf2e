// SPDX-License-Identifier: Apache-2.0
//
// An array of numbers, from FFTW (aligned for its kernels) or from MPI_Alloc_mem (which an MPI may
// take from memory that it can send from directly).
#ifndef FFT3D_BUFFER_H
#define FFT3D_BUFFER_H

#include <mpi.h>

#include <memory>
#include <new>
#include <utility>

#include "fftw.h"

namespace fft3d {

template <class Value>
class Buffer {
 public:
  Buffer() = default;
  Buffer(long values, bool from_mpi) : from_mpi_(from_mpi), values_(values) {
    // At least one: an address that is not null, also of ranks without data.
    const size_t bytes = static_cast<size_t>(values > 0 ? values : 1) * sizeof(Value);
    void* memory = nullptr;
    if (from_mpi) {
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &memory);
    } else {
      memory = Fftw<double>::kAllocate(bytes);
    }
    if (memory == nullptr) throw std::bad_alloc();
    data_ = static_cast<Value*>(memory);
    std::uninitialized_value_construct_n(data_, values);
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(from_mpi_, other.from_mpi_);
    std::swap(values_, other.values_);
    return *this;
  }
  ~Buffer() {
    if (data_ == nullptr) return;
    if (from_mpi_) {
      MPI_Free_mem(data_);
    } else {
      Fftw<double>::kFree(data_);
    }
  }

  Value* data() { return data_; }
  const Value* data() const { return data_; }
  long size() const { return values_; }

 private:
  Value* data_ = nullptr;
  bool from_mpi_ = false;
  long values_ = 0;
};

}  // namespace fft3d

#endif
