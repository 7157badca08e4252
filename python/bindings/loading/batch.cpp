// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/nested_mark.h"
#include "feedline/loader.h"
#include "interop/arrays.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/nested_values.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {

namespace {

std::string lengths_name(std::string_view field) { return std::string(field) + "_length"; }

nb::object text_of(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  PyObject* const decoded = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(bytes.size()), nullptr);
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal(decoded);
}

// The formats have validated the text; a Python error here is only a fallback.
nb::object parsed(std::span<const std::byte> bytes) {
  const CallingPython calling;
  if (base::has_nested_mark(bytes)) return nested_value(bytes);
  constexpr std::size_t kMarkBytes = 3;
  const auto is_mark = [&] { return std::memcmp(bytes.data(), "\xef\xbb\xbf", kMarkBytes) == 0; };
  if (bytes.size() >= kMarkBytes && is_mark())
    bytes = bytes.subspan(kMarkBytes);  // json.loads() rejects a byte-order
                                        // mark in a str
  return nb::module_::import_("json").attr("loads")(text_of(bytes));
}

}  // namespace

nb::object stored_row(std::span<const std::byte> bytes, Content content, std::string_view field,
                      std::optional<std::uint64_t> sample) {
  if (content == Content::kBytes) return nb::bytes(bytes.data(), bytes.size());
  Error error = data_error("field \"" + std::string(field) + "\": ", "decode").error();
  error.where.record = sample;
  try {
    return content == Content::kJson ? parsed(bytes) : text_of(bytes);
  } catch (const nb::python_error& raised) {
    error.what += nb::str(raised.value()).c_str();
  } catch (const std::invalid_argument& raised) {
    error.what += raised.what();
  }
  raise(error);
}

namespace {

nb::list list_of(const Batch& batch, const BatchField& field, Framework framework) {
  const std::uint64_t rows = batch.rows();
  std::vector<bool> is_none(field.absent.begin(), field.absent.end());
  for (const BadRow& bad : batch.bad()) is_none[bad.row] = true;
  nb::list list;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto first = static_cast<std::size_t>(field.offsets[row]);
    const auto bytes = field.buffer.subspan(first, static_cast<std::size_t>(field.offsets[row + 1]) - first);
    if (is_none[row])
      list.append(nb::none());
    else if (field.content == Content::kArray)
      list.append(to_array({bytes.data(), {field.array.spec.dtype, field.shapes[row]}}, batch, framework));
    else
      list.append(stored_row(bytes, field.content, field.name, batch.samples()[row]));
  }
  return list;
}

}  // namespace

nb::list arrays_of(const Batch& batch, Framework framework) {
  const bool stream_waits = batch.device().kind == DeviceKind::kCuda && framework != Framework::kNumpy;
  if (!stream_waits && !batch.is_ready()) unwrap(without_gil([&] { return batch.wait(); }));
  if (batch.device().kind == DeviceKind::kCuda && framework == Framework::kNumpy)
    raise_config("a batch on a GPU cannot be converted to a NumPy array: use torch or DLPack output");
  nb::list arrays;
  for (const BatchField& field : batch.fields()) {
    if (field.form == BatchForm::kList) {
      arrays.append(list_of(batch, field, framework));
      continue;
    }
    arrays.append(to_array(field.array, batch, framework));
    if (field.form == BatchForm::kPadded) arrays.append(to_array(field.lengths, batch, framework));
  }
  return arrays;
}

nb::list rows_of(std::shared_ptr<Sample> sample) {
  nb::list rows;
  for (Sample::Field& field : sample->fields) {
    nb::object value = nb::none();
    if (field.content != Content::kArray && !field.absent)
      value = stored_row(field.data, field.content, field.name, std::nullopt);
    else if (!field.absent || field.form == BatchForm::kPadded)
      value = to_array({field.bytes(), field.array}, sample, Framework::kNumpy);
    rows.append(nb::make_tuple(field.name, value));
    if (field.form == BatchForm::kPadded)
      rows.append(nb::make_tuple(lengths_name(field.name), field.absent ? 0 : field.array.shape[0]));
  }
  return rows;
}

std::vector<std::string> field_names(const Schema& schema) {
  std::vector<std::string> names;
  for (const FieldSpec& field : schema) {
    names.push_back(field.name);
    if (field.form == BatchForm::kPadded) names.push_back(lengths_name(field.name));
  }
  return names;
}

void bind_batch(nb::module_& module) {
  nb::class_<Batch>(module, "Batch")
      .def_prop_ro("names",
                   [](const Batch& self) {
                     std::vector<std::string> names;
                     for (const BatchField& field : self.fields()) {
                       names.emplace_back(field.name);
                       if (field.form == BatchForm::kPadded) names.push_back(lengths_name(field.name));
                     }
                     return names;
                   })
      .def_prop_ro("index", &Batch::index)
      .def_prop_ro(
          "samples",
          [](const Batch& self) { return std::vector<std::uint64_t>(self.samples().begin(), self.samples().end()); })
      .def("__len__", &Batch::rows)
      .def_prop_ro(
          "bad",
          [](const Batch& self) {
            nb::list rows;
            for (const BadRow& bad : self.bad()) rows.append(nb::make_tuple(bad.row, to_exception(bad.error)));
            return rows;
          },
          nb::sig("def bad(self) -> list[tuple[int, Exception]]"))
      .def(
          "to_numpy", [](const Batch& self) { return arrays_of(self, Framework::kNumpy); },
          nb::sig("def to_numpy(self) -> list[typing.Any]"))
      .def(
          "to_torch", [](const Batch& self) { return arrays_of(self, Framework::kTorch); },
          nb::sig("def to_torch(self) -> list[typing.Any]"));
}

}  // namespace feedline::python
