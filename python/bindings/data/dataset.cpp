// SPDX-License-Identifier: Apache-2.0
#include "feedline/dataset.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/open_options.h"
#include "data/operations.h"
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

Dataset open_dataset(const std::string& source, const nb::dict& arguments) {
  const OpenOptions options = open_options_of(arguments);
  return unwrap(without_gil([&] { return open(source, options); }));
}

nb::list schema_rows(const Schema& schema) {
  nb::list rows;
  for (const FieldSpec& field : schema) {
    rows.append(nb::make_tuple(field.name, to_tuple(field.array.shape), name_of(field.array.dtype),
                               enum_name(field.form), enum_name(field.content)));
  }
  return rows;
}

nb::list sample_rows(Sample&& read) { return rows_of(std::make_shared<Sample>(std::move(read))); }

nb::list drawn_rows(const std::vector<DrawnValue>& drawn) {
  nb::list rows;
  for (const DrawnValue& value : drawn)
    rows.append(nb::make_tuple(value.operation, value.name, value.values, value.view));
  return rows;
}

nb::bytes encoded_bytes(const Dataset& self, std::uint64_t index) {
  const auto encoded = unwrap(without_gil([&] { return self.encoded(index); }));
  return nb::bytes(encoded.data(), encoded.size());
}

// For names from a source, which may be damaged.
nb::object stored_text(const std::string& text) {
  PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (!made) nb::raise_python_error();
  return nb::steal(made);
}

// Python's representation of file names in any encoding: os.fsencode() restores the bytes.
nb::object key_text(const Dataset& self, std::uint64_t index) {
  const std::string key = self.key(index);
  PyObject* const text = PyUnicode_DecodeFSDefaultAndSize(key.data(), static_cast<Py_ssize_t>(key.size()));
  if (!text) nb::raise_python_error();
  return nb::steal(text);
}

// Names as bytes, for the same reason.
nb::tuple sample_files(const Dataset& self, std::uint64_t index) {
  const auto sample = unwrap(without_gil([&] { return self.files(index); }));
  const auto bytes_of = [](const auto& from) { return nb::bytes(from.data(), from.size()); };
  nb::list files;
  for (const SampleFiles::File& file : sample.files)
    files.append(nb::make_tuple(bytes_of(file.extension), bytes_of(file.bytes)));
  return nb::make_tuple(bytes_of(sample.key), sample.label, files);
}

nb::tuple sample_file_sizes(const Dataset& self, std::uint64_t index) {
  const auto sample = unwrap(without_gil([&] { return self.file_sizes(index); }));
  const auto bytes_of = [](const auto& from) { return nb::bytes(from.data(), from.size()); };
  nb::list files;
  for (const SampleFileSizes::File& file : sample.files)
    files.append(nb::make_tuple(bytes_of(file.extension), file.bytes));
  return nb::make_tuple(bytes_of(sample.key), sample.label, files);
}

void bind_reads(nb::class_<Dataset>& cls) {
  cls.def(
         "sample",
         [](const Dataset& self, std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) {
           return sample_rows(unwrap(without_gil([&] { return self.sample(index, seed, epoch); })));
         },
         "index"_a, "seed"_a, "epoch"_a,
         nb::sig("def sample(self, index: int, seed: int, epoch: int) -> list[tuple[str, typing.Any]]"))
      .def(
          "draw",
          [](const Dataset& self, std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) {
            return drawn_rows(unwrap(without_gil([&] { return self.draw(index, seed, epoch); })));
          },
          "index"_a, "seed"_a, "epoch"_a,
          nb::sig("def draw(self, index: int, seed: int, epoch: int) -> "
                  "list[tuple[str, str, list[float], str]]"))
      .def(
          "draw_for_size",
          [](const Dataset& self, int height, int width, std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) {
            return drawn_rows(unwrap(without_gil([&] { return self.draw(Size{height, width}, index, seed, epoch); })));
          },
          "height"_a, "width"_a, "index"_a, "seed"_a, "epoch"_a,
          nb::sig("def draw_for_size(self, height: int, width: int, index: int, seed: int, epoch: int) -> "
                  "list[tuple[str, str, list[float], str]]"))
      .def("take_image_depth", &Dataset::take_image_depth)
      .def("encoded", &encoded_bytes, "index"_a)
      .def("files", &sample_files, "index"_a,
           nb::sig("def files(self, index: int) -> tuple[bytes, int | None, list[tuple[bytes, bytes]]]"))
      .def("file_sizes", &sample_file_sizes, "index"_a,
           nb::sig("def file_sizes(self, index: int) -> tuple[bytes, int | None, list[tuple[bytes, int]]]"))
      .def("key", &key_text, "index"_a, nb::sig("def key(self, index: int) -> str"))
      .def(
          "measure_decode",
          [](const Dataset& self, std::uint64_t images, int threads, std::uint64_t seed) {
            const auto limit = unwrap(without_gil([&] { return self.measure_decode(images, threads, seed); }));
            return nb::make_tuple(limit.images, limit.encoded_bytes, limit.wall_s, limit.cpu_s, limit.threads);
          },
          "images"_a, "threads"_a, "seed"_a,
          nb::sig("def measure_decode(self, images: int, threads: int, seed: int) -> "
                  "tuple[int, int, float, float, int]"))
      .def(
          "make_checkpoints",
          [](const Dataset& self, int threads) {
            const auto made = unwrap(without_gil([&] { return self.make_checkpoints(threads); }));
            return nb::make_tuple(made.images, made.bytes, made.path);
          },
          "threads"_a, nb::sig("def make_checkpoints(self, threads: int) -> tuple[int, int, str]"));
}

// name ("": by position), a chain, a count or None, and the view whose draws it shares: one field of views().
using ViewRow = std::tuple<std::string, const Dataset*, std::optional<int>, std::vector<int>>;

void bind_views(nb::class_<Dataset>& cls) {
  cls.def(
         "views",
         [](const Dataset& self, const std::vector<ViewRow>& rows, const std::string& field) {
           std::vector<View> views;
           for (const auto& [name, chain, count, drawn_as] : rows)
             views.push_back({name, chain->operations(), count, drawn_as});
           return unwrap(self.views(std::move(views), field));
         },
         "views"_a, "field"_a)
      .def(
          "five_crop",
          [](const Dataset& self, std::pair<int, int> size, const std::string& field) {
            return unwrap(self.five_crop({size.first, size.second}, field));
          },
          "size"_a, "field"_a)
      .def(
          "ten_crop",
          [](const Dataset& self, std::pair<int, int> size, bool vertical_flip, const std::string& field) {
            return unwrap(self.ten_crop({size.first, size.second}, vertical_flip, field));
          },
          "size"_a, "vertical_flip"_a, "field"_a);
}

using Pixels = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// A SampleReader that Python threads may share; calls are serialised.
class GuardedReader {
 public:
  explicit GuardedReader(SampleReader reader) : reader_(std::move(reader)) {}
  const Schema& schema() const { return reader_.schema(); }
  Result<Sample> read(GivenSample sample, std::uint64_t seed, std::uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    return reader_.read(sample, seed, epoch);
  }
  Result<Sample> read(std::span<const std::byte> encoded, std::uint64_t draw, std::uint64_t seed, std::uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    return reader_.read(encoded, draw, seed, epoch);
  }
  Result<Sample> read(const GivenPixels& pixels, std::uint64_t draw, std::uint64_t seed, std::uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    return reader_.read(pixels, draw, seed, epoch);
  }

 private:
  std::mutex mutex_;
  SampleReader reader_;
};

void bind_reader(nb::module_& module, nb::class_<Dataset>& cls) {
  nb::class_<GuardedReader>(module, "SampleReader")
      .def(
          "schema", [](const GuardedReader& self) { return schema_rows(self.schema()); },
          nb::sig("def schema(self) -> list[tuple[str, tuple[int, ...], str, str, str]]"))
      .def(
          "read",
          [](GuardedReader& self, std::uint64_t index, std::uint64_t draw, std::uint64_t seed, std::uint64_t epoch) {
            return sample_rows(unwrap(without_gil([&] { return self.read({index, draw}, seed, epoch); })));
          },
          "index"_a, "draw"_a, "seed"_a, "epoch"_a,
          nb::sig("def read(self, index: int, draw: int, seed: int, epoch: int) -> list[tuple[str, typing.Any]]"))
      .def(
          "read_encoded",
          [](GuardedReader& self, nb::handle data, std::uint64_t draw, std::uint64_t seed, std::uint64_t epoch) {
            const HeldBytes held(data);
            return sample_rows(unwrap(without_gil([&] { return self.read(held.bytes(), draw, seed, epoch); })));
          },
          "data"_a, "draw"_a, "seed"_a, "epoch"_a,
          nb::sig("def read_encoded(self, data: typing.Any, draw: int, seed: int, epoch: int) -> list[tuple[str, "
                  "typing.Any]]"))
      .def(
          "read_pixels",
          [](GuardedReader& self, const Pixels& pixels, std::uint64_t draw, std::uint64_t seed, std::uint64_t epoch) {
            const auto extent = [&](std::size_t i) { return static_cast<int>(pixels.shape(i)); };
            const GivenPixels given{pixels.data(), extent(1), extent(0), extent(2)};
            return sample_rows(unwrap(without_gil([&] { return self.read(given, draw, seed, epoch); })));
          },
          "pixels"_a, "draw"_a, "seed"_a, "epoch"_a,
          nb::sig("def read_pixels(self, pixels: numpy.typing.NDArray[numpy.uint8], draw: int, seed: int, epoch: int) "
                  "-> list[tuple[str, typing.Any]]"));
  cls.def(
      "reader",
      [](const Dataset& self, const std::string& layout) {
        const Layout word = layout_of(layout);
        return std::make_unique<GuardedReader>(unwrap(without_gil([&] { return self.reader(word); })));
      },
      "layout"_a);
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<Dataset> cls(module, "Dataset");
  cls.def("__len__", &Dataset::size)
      .def_prop_ro("source", [](const Dataset& self) { return self.source(); })
      .def_prop_ro("format", &Dataset::format)
      .def_prop_ro("classes", [](const Dataset& self) { return self.classes(); })
      .def("shard_ends", &Dataset::shard_ends)
      .def("block_ends", &Dataset::block_ends)
      .def_prop_ro(
          "unopened",
          [](const Dataset& self) {
            nb::list rows;
            for (const UnopenedColumn& one : self.unopened())
              rows.append(
                  nb::make_tuple(stored_text(one.name), stored_text(one.holds), one.reason, stored_text(one.spec)));
            return rows;
          },
          nb::sig("def unopened(self, /) -> list[tuple[str, str, str, str]]"))
      .def_prop_ro(
          "remarks",
          [](const Dataset& self) {
            nb::list rows;
            for (const FieldRemark& one : self.remarks())
              rows.append(nb::make_tuple(one.field, one.unit, stored_text(one.text)));
            return rows;
          },
          nb::sig("def remarks(self, /) -> list[tuple[str, str, str]]"))
      .def_prop_ro("fingerprint", &Dataset::fingerprint)
      .def("inspect", [](const Dataset& self) { return unwrap(without_gil([&] { return self.inspect(); })); })
      .def("operations",
           [](const Dataset& self) {
             std::vector<std::string> described;
             for (const Operation& operation : self.operations()) described.push_back(describe(operation));
             if (const auto viewed = self.viewed())
               described.insert(described.begin() + static_cast<std::ptrdiff_t>(viewed->second), viewed->first);
             if (const auto cached = self.cached())
               described.insert(described.begin() + static_cast<std::ptrdiff_t>(cached->second),
                                "cache('" + cached->first + "')");
             return described;
           })
      .def(
          "schema", [](const Dataset& self) { return schema_rows(unwrap(without_gil([&] { return self.schema(); }))); },
          nb::sig("def schema(self) -> list[tuple[str, tuple[int, ...], str, str, str]]"))
      .def(
          "explain", [](const Dataset& self) { return stored_text(without_gil([&] { return self.explain(); })); },
          nb::sig("def explain(self) -> str"))
      .def(
          "cache",
          [](const Dataset& self, const std::string& where, std::uint64_t budget) {
            return unwrap(self.cache(where, budget));
          },
          "where"_a, "budget"_a)
      .def(
          "collate",
          [](const Dataset& self, const std::string& form, const std::vector<std::string>& fields) {
            return unwrap(self.collate(batch_form_of(form), fields));
          },
          "form"_a, "fields"_a);
  bind_views(cls);
  bind_operations(module, cls);
  bind_reads(cls);
  bind_reader(module, cls);
  module.def(
      "label_names",
      [] {
        const auto names = label_names();
        return std::vector<std::string_view>(names.begin(), names.end());
      },
      "Common names of label columns.");
  module.def("open", &open_dataset, "source"_a, "options"_a = nb::dict(),
             nb::sig("def open(source: str, options: dict[str, typing.Any] = {}) -> Dataset"));
}

}  // namespace feedline::python
