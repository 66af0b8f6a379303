// Kernels for the tests, as an image for the host has them: one call is one thread.
#include "cuda/emulator/emulated.h"

namespace {
template <class T> T *argument(void **parameters, int index) { return *static_cast<T **>(parameters[index]); }
int threadInGrid() {
  return static_cast<int>(drt_emulated_register(DRT_EMULATED_CTAID) * drt_emulated_register(DRT_EMULATED_NTID) +
                          drt_emulated_register(DRT_EMULATED_TID));
}
float shared[1024];
} // namespace

extern "C" {
// y[i] += x[i]
extern const int32_t add_parameters = 2;
void add(void **parameters) {
  int i = threadInGrid();
  argument<float>(parameters, 1)[i] += argument<float>(parameters, 0)[i];
}

// y[i] = 2 * y[i] + 1: does not commute with `add`.
extern const int32_t twice_parameters = 1;
void twice(void **parameters) {
  float &y = argument<float>(parameters, 0)[threadInGrid()];
  y = 2 * y + 1;
}

// Reverses each block by shared memory: every thread reads what another wrote.
extern const int32_t reverse_parameters = 2;
void reverse(void **parameters) {
  int thread = static_cast<int>(drt_emulated_register(DRT_EMULATED_TID)),
      last = static_cast<int>(drt_emulated_register(DRT_EMULATED_NTID)) - 1;
  shared[thread] = argument<float>(parameters, 0)[threadInGrid()];
  drt_emulated_barrier();
  argument<float>(parameters, 1)[threadInGrid()] = shared[last - thread];
  drt_emulated_barrier();
}

// Each warp's sum in all its lanes, by butterflies.
extern const int32_t warp_sum_parameters = 1;
void warp_sum(void **parameters) {
  uint32_t &x = argument<uint32_t>(parameters, 0)[threadInGrid()];
  uint32_t sum = x;
  for (uint32_t offset = 16; offset > 0; offset /= 2)
    sum += drt_emulated_shuffle(DRT_EMULATED_BUTTERFLY, ~0u, sum, offset, 31);
  x = sum;
}

// The value of the lane one further down, in segments of 8 lanes.
extern const int32_t shift_parameters = 1;
void shift(void **parameters) {
  uint32_t &x = argument<uint32_t>(parameters, 0)[threadInGrid()];
  x = drt_emulated_shuffle(DRT_EMULATED_DOWN, ~0u, x, 1, 0x1800 | 31);
}

// sums[16, 8] += left[16, 16] right[16, 8], elements of bfloat16 but for the sums: a warp, by the formulas of PTX's ISA
// for the elements of fragments.
extern const int32_t multiply_parameters = 3;
void multiply(void **parameters) {
  const auto *left = argument<const uint16_t>(parameters, 0), *right = argument<const uint16_t>(parameters, 1);
  auto *sums = argument<float>(parameters, 2);
  const uint32_t lane = drt_emulated_register(DRT_EMULATED_LANEID), group = lane >> 2, inGroup = lane % 4;
  uint32_t a[4] = {}, b[2] = {};
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
    const uint32_t column = inGroup * 2 + (i & 1) + (i < 4 ? 0 : 8);
    a[i / 2] |= static_cast<uint32_t>(left[row * 16 + column]) << i % 2 * 16;
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t row = inGroup * 2 + (i & 1) + (i < 2 ? 0 : 8);
    b[i / 2] |= static_cast<uint32_t>(right[row * 8 + group]) << i % 2 * 16;
  }
  float c[4];
  const auto place = [&](uint32_t i) { return (i < 2 ? group : group + 8) * 8 + inGroup * 2 + (i & 1); };
  for (uint32_t i = 0; i < 4; ++i)
    c[i] = sums[place(i)];
  drt_emulated_multiply(a, b, c);
  for (uint32_t i = 0; i < 4; ++i)
    sums[place(i)] = c[i];
}

// Half of the block waits for what the other half, at a shuffle, never comes to.
extern const int32_t deadlock_parameters = 1;
void deadlock(void **) {
  if (drt_emulated_register(DRT_EMULATED_TID) % 2 == 0)
    drt_emulated_barrier();
  else
    drt_emulated_shuffle(DRT_EMULATED_INDEX, ~0u, 0, 0, 31);
}

// Coordinates of a three-dimensional launch.
extern const int32_t coordinates_parameters = 1;
void coordinates(void **parameters) {
  uint32_t t[3], n[3], b[3], g[3];
  for (int d = 0; d < 3; ++d) {
    t[d] = drt_emulated_register(DRT_EMULATED_TID + d);
    n[d] = drt_emulated_register(DRT_EMULATED_NTID + d);
    b[d] = drt_emulated_register(DRT_EMULATED_CTAID + d);
    g[d] = drt_emulated_register(DRT_EMULATED_NCTAID + d);
  }
  uint32_t x = b[0] * n[0] + t[0], y = b[1] * n[1] + t[1], z = b[2] * n[2] + t[2];
  argument<uint32_t>(parameters, 0)[(z * g[1] * n[1] + y) * g[0] * n[0] + x] = x + 100 * y + 10000 * z;
}
} // extern "C"
