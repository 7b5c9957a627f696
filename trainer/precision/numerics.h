// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// What products of float32 matrices are computed in: torch.set_float32_matmul_precision.
enum class MatmulPrecision {
  highest,  ///< float32.
  high,     ///< TensorFloat32 (10 bits of mantissa) on GPUs.
  medium,   ///< The same, and on CPUs bfloat16 (7 bits) where oneDNN has a kernel for it.
};

/// How this process computes, besides autocast.
struct Numerics {
  MatmulPrecision float32_matmul = MatmulPrecision::highest;
  /// LibTorch takes algorithms that give the same bits each time, and throws where it has none.
  bool deterministic = false;
  /// Where LibTorch has no such algorithm it warns and takes another one.
  bool warn_only = false;
  /// Shapes differ from call to call, as where a model is used: no kernel is taken that has to be
  /// planned for each, as cuDNN's attention is (some 45 ms on an H200).
  bool changing_shapes = false;

  bool operator==(const Numerics&) const = default;
};

/// What must be settled before anything is computed on a GPU and while the process has one thread:
/// cuBLAS repeats its results only with CUBLAS_WORKSPACE_CONFIG, which is set where it is not.
/// Throws UserError for a value of the user's own that does not repeat them.
void prepare_numerics(const Numerics& numerics);

/// From now on all threads compute so.
void use_numerics(const Numerics& numerics);

}  // namespace phalanx
