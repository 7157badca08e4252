// SPDX-License-Identifier: Apache-2.0
#include "interop/errors.h"

#include "interop/gil.h"
#include "interop/message_text.h"
#include "interop/text_caster.h"

namespace nb = nanobind;

namespace feedline::python {
namespace {

const char* class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConfig:
      return "ConfigError";
    case ErrorCode::kData:
      return "DataError";
    case ErrorCode::kStorage:
      return "StorageError";
    case ErrorCode::kStalled:
      return "StalledError";
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal:
      return "Error";
  }
  return "Error";
}

nb::object text_or_none(const std::string& text) { return text.empty() ? nb::object(nb::none()) : message_text(text); }

nb::object number_or_none(const std::optional<std::uint64_t>& number) {
  return number ? nb::cast(*number) : nb::object(nb::none());
}

}  // namespace

nb::object message_text(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConfig:
      return "config";
    case ErrorCode::kData:
      return "data";
    case ErrorCode::kStorage:
      return "storage";
    case ErrorCode::kStalled:
      return "stalled";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

nb::object to_exception(const Error& error) {
  const CallingPython calling;
  nb::object cls = nb::module_::import_("feedline.errors").attr(class_of(error.code));
  nb::dict location;
  location["dataset"] = text_or_none(error.where.dataset);
  location["shard"] = text_or_none(error.where.shard);
  location["key"] = text_or_none(error.where.key);
  location["record"] = number_or_none(error.where.record);
  location["offset"] = number_or_none(error.where.offset);
  location["stage"] = text_or_none(error.where.stage);
  if (error.code == ErrorCode::kStorage && error.system_errno != 0) location["errno"] = error.system_errno;
  const bool ours = error.code == ErrorCode::kInternal;
  const std::string message = ours ? "internal error, please report it: " + error.message() : error.message();
  nb::object exception = cls(message_text(message), **location);
  if (error.raised) PyException_SetCause(exception.ptr(), nb::borrow(object_of(error.raised)).release().ptr());
  return exception;
}

void raise(const Error& error) {
  // exceptions that end a program propagate unchanged
  const bool is_end = error.code == ErrorCode::kCancelled && error.raised;
  nb::object exception = is_end ? nb::borrow(object_of(error.raised)) : to_exception(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

void raise_config(std::string what) { raise(config_error(std::move(what)).error()); }

}  // namespace feedline::python
