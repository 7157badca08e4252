// SPDX-License-Identifier: Apache-2.0
#include "feedline/spans.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

static_assert(sizeof(Span) == 32, "python/feedline/trace/spans.py reads them by this layout");

std::pair<nb::bytes, std::uint64_t> take() {
  const SpanRecording recording = without_gil([] { return take_spans(); });
  return {nb::bytes(recording.spans.data(), recording.spans.size() * sizeof(Span)), recording.dropped};
}

}  // namespace

void bind_spans(nb::module_& module) {
  module.def("span_stages", &span_stages);
  module.def("start_spans", &start_spans, "spans_per_thread"_a);
  module.def("take_spans", &take,
             "Returns the latest spans (32 bytes each) and the number of spans that were overwritten.");
  module.def("stop_spans", &stop_spans);
}

}  // namespace feedline::python
