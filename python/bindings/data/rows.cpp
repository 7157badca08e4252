// SPDX-License-Identifier: Apache-2.0
#include "feedline/rows.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "data/open_options.h"
#include "interop/arrays.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using Cells = std::shared_ptr<const TextCells>;

// A Python object that owns memory which a dataset reads.
std::shared_ptr<const void> held(nb::object object) {
  return {new nb::object(std::move(object)), [](const nb::object* o) {
            const nb::gil_scoped_acquire gil;
            delete o;
          }};
}

template <typename T>
const T* at_address(std::uintptr_t address) {
  return reinterpret_cast<const T*>(address);  // NOLINT: NumPy and Arrow give addresses as numbers
}

// The strings of a list: str as UTF-8, bytes as they are. Returns the index of the first item that is neither, if there
// is one. The list must not change afterwards. Python caches the UTF-8 of a str in it.
std::variant<Cells, std::size_t> text_cells_of_list(nb::list values) {
  TextCells cells{.rows = nb::len(values)};
  TextCells::Scattered texts;
  texts.starts.reserve(cells.rows);
  texts.lengths.reserve(cells.rows);
  for (std::size_t i = 0; i < cells.rows; ++i) {
    nb::object value = values[i];
    const char* start = nullptr;
    Py_ssize_t length = 0;
    if (PyUnicode_Check(value.ptr()) != 0) {
      start = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
      if (start == nullptr) {  // a file name that is not UTF-8
        PyErr_Clear();
        value = nb::steal(PyUnicode_EncodeFSDefault(value.ptr()));
        if (!value.is_valid()) nb::raise_python_error();
        values[i] = value;
      }
    }
    if (start == nullptr && PyBytes_Check(value.ptr()) != 0) {
      start = PyBytes_AsString(value.ptr());
      length = PyBytes_Size(value.ptr());
    }
    if (start == nullptr || length > INT32_MAX) return i;
    texts.starts.push_back(start);
    texts.lengths.push_back(static_cast<std::uint32_t>(length));
  }
  cells.form = std::move(texts);
  cells.owner = held(std::move(values));
  return std::make_shared<const TextCells>(std::move(cells));
}

using Buffer = std::pair<std::uintptr_t, std::size_t>;  // address, bytes

std::string_view text_in(const Buffer& buffer) { return {at_address<char>(buffer.first), buffer.second}; }

Cells checked(TextCells cells) {
  unwrap(check(cells));
  return std::make_shared<const TextCells>(std::move(cells));
}

// rows, address of the offsets, bytes of an offset, the text
using ArrowChunk = std::tuple<std::uint64_t, std::uintptr_t, int, Buffer>;

Cells text_cells_of_arrow(const std::vector<ArrowChunk>& given, nb::object owner) {
  TextCells cells;
  std::vector<TextCells::Chunk> chunks;
  for (const auto& [rows, offsets, offset_bytes, data] : given) {
    cells.rows += rows;
    chunks.push_back({cells.rows, at_address<std::byte>(offsets), offset_bytes == 8, text_in(data)});
  }
  cells.form = std::move(chunks);
  cells.owner = held(std::move(owner));
  return checked(std::move(cells));
}

// rows, address of the views, buffers
using ArrowViews = std::tuple<std::uint64_t, std::uintptr_t, std::vector<Buffer>>;

Cells text_cells_of_arrow_views(const std::vector<ArrowViews>& given, nb::object owner) {
  TextCells cells;
  std::vector<TextCells::ViewChunk> chunks;
  for (const auto& [rows, views, buffers] : given) {
    cells.rows += rows;
    chunks.push_back({cells.rows, at_address<std::byte>(views), {}});
    for (const Buffer& buffer : buffers) chunks.back().buffers.push_back(text_in(buffer));
  }
  cells.form = std::move(chunks);
  cells.owner = held(std::move(owner));
  return checked(std::move(cells));
}

Cells text_cells_of_utf32(std::uintptr_t address, std::uint64_t rows, std::ptrdiff_t stride, std::size_t characters,
                          nb::object owner) {
  const TextCells::FixedWidth form{at_address<std::byte>(address), stride, characters};
  return std::make_shared<const TextCells>(TextCells{rows, form, held(std::move(owner))});
}

Cells text_cells_of_integers(std::uintptr_t address, std::uint64_t rows, std::ptrdiff_t stride,
                             const std::string& dtype, nb::object owner) {
  const TextCells::Integers form{at_address<std::byte>(address), stride, dtype_of(dtype)};
  return std::make_shared<const TextCells>(TextCells{rows, form, held(std::move(owner))});
}

template <typename Number>
std::vector<Number> numbers_in(const nb::object& buffer) {
  const HeldBytes bytes(buffer);
  std::vector<Number> numbers(bytes.bytes().size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.bytes().data(), numbers.size() * sizeof(Number));
  return numbers;
}

// name, owner, address, rows, stride in bytes, dtype, shape of a row; a buffer of int64 offsets or None; the kind
using NumberRow = std::tuple<std::string, nb::object, std::uintptr_t, std::uint64_t, std::int64_t, std::string,
                             std::vector<std::int64_t>, nb::object, std::string>;

NamedArray named_array(const NumberRow& row) {
  const auto& [name, owner, address, count, stride, dtype, shape, offsets, kind] = row;
  if (shape.size() + 2 > Shape::kMaxDims)
    raise_config("the column '" + name + "' has more than " + std::to_string(Shape::kMaxDims - 2) + " dimensions");
  Shape extents;
  for (std::size_t i = shape.size(); i-- > 0;) extents = extents.with_front(shape[i]);
  NamedArray array{.name = name,
                   .data = at_address<std::byte>(address),
                   .rows = count,
                   .stride = static_cast<std::ptrdiff_t>(stride),
                   .row = {dtype_of(dtype), extents},
                   .kind = kind};
  array.owner = std::const_pointer_cast<void>(held(owner));
  if (!offsets.is_none()) array.offsets = numbers_in<std::int64_t>(offsets);
  return array;
}

// The columns of a dataset, in the order of its fields.
class RowColumns {
 public:
  // position: None, or the number of the image in each row's list; offsets: of the lists, a buffer of int64.
  void add_files(const std::string& name, const std::string& kind, const std::string& root,
                 const std::vector<std::string>& literals, const std::vector<Cells>& cells, const nb::object& offsets,
                 std::uint64_t position) {
    FileColumn column{.name = name, .kind = kind, .root = root, .literals = literals, .cells = cells};
    if (!offsets.is_none()) {
      auto given = numbers_in<std::int64_t>(offsets);
      if (!offsets_ || *offsets_ != given)  // the fields of one column share the memory
        offsets_ = std::make_shared<const std::vector<std::int64_t>>(std::move(given));
      column.offsets = offsets_;
      column.position = position;
    }
    options_.columns.emplace_back(std::move(column));
  }
  // begins, durations: buffers of float64, the part of each row's file in seconds; a negative duration is the rest.
  // channels: a buffer of int32, the only channel to deliver of each row's file, -1 for all; or None.
  void add_audio(const std::string& name, const std::string& root, const Cells& cells, const nb::object& begins,
                 const nb::object& durations, const nb::object& channels) {
    FileColumn column{.name = name, .kind = "audio", .root = root, .literals = {"", ""}, .cells = {cells}};
    column.begins = numbers_in<double>(begins);
    column.durations = numbers_in<double>(durations);
    if (!channels.is_none()) column.channels = numbers_in<std::int32_t>(channels);
    options_.columns.emplace_back(std::move(column));
  }
  void add_texts(const std::string& name, const Cells& cells) {
    options_.columns.emplace_back(TextColumn{name, cells});
  }
  void add_numbers(const NumberRow& row) { options_.columns.emplace_back(NumberColumn{named_array(row)}); }
  void add_multi_hot(const NumberRow& codes, std::uint64_t classes) {
    options_.columns.emplace_back(MultiHotColumn{named_array(codes), classes});
  }
  void set_classes(const std::vector<std::string>& classes) { options_.classes = classes; }
  void set_row_names(const Cells& names) { options_.row_names = names; }
  // Names of columns, their types, reasons and specs.
  void set_unopened(const std::vector<std::tuple<std::string, std::string, std::string, std::string>>& columns) {
    for (const auto& [name, holds, reason, spec] : columns) options_.unopened.push_back({name, holds, reason, spec});
  }
  Dataset open(const std::string& source, const nb::dict& arguments) {
    RowOptions options = options_;
    options.source = source;
    options.options = open_options_of(arguments);
    return unwrap(without_gil([&] { return rows(std::move(options)); }));
  }

 private:
  RowOptions options_;
  std::shared_ptr<const std::vector<std::int64_t>> offsets_;  // offsets of the last list column
};

using Steps = std::optional<std::vector<std::int64_t>>;
using Extents = std::optional<std::pair<int, int>>;  // height, width

std::optional<Size> size_of_frames(const Extents& size) {
  return size ? std::optional(Size{size->first, size->second}) : std::nullopt;
}

// See EpisodeOptions. Columns are in the order of the fields.
class EpisodeColumns {
 public:
  void add_numbers(const NumberRow& row, Steps steps) {
    options_.columns.emplace_back(EpisodeNumbers{named_array(row), std::move(steps)});
  }
  void add_pads(const std::string& name, const std::vector<std::int64_t>& steps) {
    options_.columns.emplace_back(EpisodePads{name, steps});
  }
  // cell_of_row: None if each row has its own cell.
  void add_texts(const std::string& name, const Cells& cells, const std::optional<NumberRow>& cell_of_row) {
    options_.columns.emplace_back(EpisodeTexts{name, cells, cell_of_row ? named_array(*cell_of_row) : NamedArray{}});
  }
  void add_videos(const std::string& name, const Cells& paths, const std::vector<double>& begins,
                  const NumberRow& times, double tolerance, Steps steps, const Extents& size) {
    options_.columns.emplace_back(
        EpisodeVideos{name, paths, begins, named_array(times), tolerance, std::move(steps), size_of_frames(size)});
  }
  void add_images(const std::string& name, const Dataset& images, const std::string& field, Steps steps,
                  const Extents& size) {
    options_.columns.emplace_back(EpisodeImages{name, images, field, std::move(steps), size_of_frames(size)});
  }
  void set_unopened(const std::vector<std::tuple<std::string, std::string, std::string, std::string>>& columns) {
    for (const auto& [name, holds, reason, spec] : columns) options_.unopened.push_back({name, holds, reason, spec});
  }
  Dataset open(const std::string& source, const std::string& format, const std::vector<std::int64_t>& ends,
               const nb::dict& arguments) {
    EpisodeOptions options = options_;
    options.source = source;
    options.format = format;
    options.ends = ends;
    options.options = open_options_of(arguments);
    return unwrap(without_gil([&] { return episodes(std::move(options)); }));
  }

 private:
  EpisodeOptions options_;
};

// most: the number of rows to return; None: all.
nb::list texts_of(const TextCells& cells, std::optional<std::uint64_t> most) {
  // Only the form that read_table() makes: other cells are Python's own.
  nb::list texts;
  const auto& chunk = std::get<std::vector<TextCells::Chunk>>(cells.form).front();
  const auto* const offsets = reinterpret_cast<const std::int64_t*>(chunk.offsets);
  for (std::uint64_t row = 0; row < std::min(most.value_or(chunk.end), chunk.end); ++row) {
    PyObject* const text =
        PyUnicode_DecodeFSDefaultAndSize(chunk.data.data() + offsets[row], offsets[row + 1] - offsets[row]);
    if (text == nullptr) nb::raise_python_error();
    texts.append(nb::steal(text));
  }
  return texts;
}

nb::bytes bytes_of(const auto& numbers) { return nb::bytes(numbers.data(), numbers.size() * sizeof(numbers[0])); }

nb::tuple table_columns(const std::string& source) {
  TableCells table = unwrap(without_gil([&] { return read_table(source); }));
  nb::list columns;
  for (const TableColumnCells& column : table.columns) {
    std::vector<std::uint8_t> absent(column.absent.begin(), column.absent.end());
    const bool are_integers = column.holds == "integers";
    columns.append(nb::make_tuple(column.name, column.holds, column.cells, bytes_of(absent),
                                  are_integers ? bytes_of(column.integers) : bytes_of(column.reals)));
  }
  nb::list unread;
  for (const UnopenedColumn& column : table.unread) unread.append(nb::make_tuple(column.name, column.holds));
  return nb::make_tuple(table.folder, columns, unread);
}

nb::object field_values(const Dataset& dataset, const std::string& field) {
  auto values = std::make_shared<FieldValues>(unwrap(without_gil([&] { return dataset.field_values(field); })));
  if (values->is_text) {
    nb::list texts;
    for (const std::string& text : values->texts) {
      PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
      if (made == nullptr) nb::raise_python_error();
      texts.append(nb::steal(made));
    }
    return nb::object(std::move(texts));
  }
  if (values->are_separate) {
    nb::list arrays;
    std::byte* data = values->data.data();
    for (const Shape& shape : values->shapes) {
      const ArraySpec spec{values->row.dtype, shape};
      arrays.append(to_array({data, spec}, values, Framework::kNumpy));
      data += spec.bytes();
    }
    return nb::object(std::move(arrays));
  }
  const ArraySpec all{values->row.dtype, values->row.shape.with_front(static_cast<std::int64_t>(dataset.size()))};
  return to_array({values->data.data(), all}, values, Framework::kNumpy);
}

}  // namespace

void bind_rows(nb::module_& module) {
  nb::class_<TextCells>(module, "TextCells")
      .def("__len__", [](const TextCells& self) { return self.rows; })
      .def("to_list", &texts_of, "most"_a = nb::none(),
           nb::sig("def to_list(self, most: int | None = None) -> list[str]"));
  module.def("text_cells_of_list", &text_cells_of_list, "values"_a,
             nb::sig("def text_cells_of_list(values: list[typing.Any]) -> TextCells | int"));
  module.def("text_cells_of_arrow", &text_cells_of_arrow, "chunks"_a, "owner"_a);
  module.def("text_cells_of_arrow_views", &text_cells_of_arrow_views, "chunks"_a, "owner"_a);
  module.def("text_cells_of_utf32", &text_cells_of_utf32, "address"_a, "rows"_a, "stride"_a, "characters"_a, "owner"_a);
  module.def("text_cells_of_integers", &text_cells_of_integers, "address"_a, "rows"_a, "stride"_a, "dtype"_a,
             "owner"_a);
  nb::class_<RowColumns>(module, "RowColumns")
      .def(nb::init<>())
      .def("add_files", &RowColumns::add_files, "name"_a, "kind"_a, "root"_a, "literals"_a, "cells"_a,
           "offsets"_a.none(), "position"_a)
      .def("add_audio", &RowColumns::add_audio, "name"_a, "root"_a, "cells"_a, "begins"_a, "durations"_a,
           "channels"_a = nb::none())
      .def("add_texts", &RowColumns::add_texts, "name"_a, "cells"_a)
      .def("add_numbers", &RowColumns::add_numbers, "row"_a)
      .def("add_multi_hot", &RowColumns::add_multi_hot, "codes"_a, "classes"_a)
      .def("set_classes", &RowColumns::set_classes, "classes"_a)
      .def("set_row_names", &RowColumns::set_row_names, "names"_a)
      .def("set_unopened", &RowColumns::set_unopened, "columns"_a)
      .def("open", &RowColumns::open, "source"_a, "options"_a,
           nb::sig("def open(self, source: str, options: dict[str, typing.Any]) -> Dataset"));
  nb::class_<EpisodeColumns>(module, "EpisodeColumns")
      .def(nb::init<>())
      .def("add_numbers", &EpisodeColumns::add_numbers, "row"_a, "steps"_a.none())
      .def("add_pads", &EpisodeColumns::add_pads, "name"_a, "steps"_a)
      .def("add_texts", &EpisodeColumns::add_texts, "name"_a, "cells"_a, "cell_of_row"_a.none())
      .def("add_videos", &EpisodeColumns::add_videos, "name"_a, "paths"_a, "begins"_a, "times"_a, "tolerance"_a,
           "steps"_a.none(), "size"_a.none())
      .def("add_images", &EpisodeColumns::add_images, "name"_a, "images"_a, "field"_a, "steps"_a.none(),
           "size"_a.none())
      .def("set_unopened", &EpisodeColumns::set_unopened, "columns"_a)
      .def("open", &EpisodeColumns::open, "source"_a, "format"_a, "ends"_a, "options"_a,
           nb::sig("def open(self, source: str, format: str, ends: collections.abc.Sequence[int], options: dict[str, "
                   "typing.Any]) -> Dataset"));
  module.def("read_table", &table_columns, "source"_a,
             nb::sig("def read_table(source: str) -> tuple[str, list[tuple[str, str, TextCells, bytes, bytes]], "
                     "list[tuple[str, str]]]"));
  module.def("field_values", &field_values, "dataset"_a, "field"_a,
             nb::sig("def field_values(dataset: Dataset, field: str) -> typing.Any"));
}

}  // namespace feedline::python
