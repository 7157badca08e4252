// SPDX-License-Identifier: Apache-2.0
#pragma once

// The engine's enumerations as the words that Python uses for them. A word that the engine does not have raises
// feedline.ConfigError. Requires: the GIL is held.

#include <string>
#include <string_view>

#include "feedline/dataset.h"
#include "feedline/loader.h"
#include "feedline/operation.h"

namespace feedline::python {

DType dtype_of(std::string_view word);                  // NumPy's names
Interpolation interpolation_of(std::string_view word);  // "nearest", "box", "bilinear", "bicubic"
PaddingMode padding_mode_of(std::string_view word);     // "constant", "edge", "reflect", "symmetric"
ColorMode color_mode_of(std::string_view word);         // "RGB", "L"
Fidelity fidelity_of(std::string_view word);            // "exact", "fast"
Layout layout_of(std::string_view word);                // "NCHW", "NHWC"
OnError on_error_of(std::string_view word);             // "raise", "skip", "replace", "report"
Uneven uneven_of(std::string_view word);                // "pad", "drop", "exact"
Documents documents_of(std::string_view word);          // "pack", "apart"
MixUntil mix_until_of(std::string_view word);           // "samples", "first", "last"
Missing missing_of(std::string_view word);              // "error", "skip", "none"
BatchForm batch_form_of(std::string_view word);         // "stack", "pad", "list"
std::string_view word_of(OnError action);
std::string_view word_of(BatchForm form);
std::string_view word_of(Content content);  // "array", "bytes", "text", "json"

}  // namespace feedline::python
