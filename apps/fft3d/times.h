// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a transform goes.
#ifndef FFT3D_TIMES_H
#define FFT3D_TIMES_H

#include <mpi.h>

namespace fft3d {

struct Times {
  double transform_s = 0;
  double pack_s = 0;
  double exchange_s = 0;  // in the MPI: starting, testing, waiting
  double unpack_s = 0;
};

// Adds up what passes between one lap and the next.
class Laps {
 public:
  Laps() : last_s_(MPI_Wtime()) {}
  void add_to(double& sum_s) {
    const double now_s = MPI_Wtime();
    sum_s += now_s - last_s_;
    last_s_ = now_s;
  }

 private:
  double last_s_;
};

}  // namespace fft3d

#endif
