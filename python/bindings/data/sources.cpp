// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/sources/volumes.h"
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

// Paths are bytes, as file names need not be text.
std::uint64_t add_paths(GivenFiles& self, const std::vector<nb::bytes>& paths) {
  std::vector<GivenImage> files;
  files.reserve(paths.size());
  for (const nb::bytes& path : paths) files.push_back({std::string(path.c_str(), path.size())});
  return self.add(std::move(files));
}

// Path, address and size in bytes; address 0: a file to read.
std::uint64_t add_images(GivenFiles& self,
                         const std::vector<std::tuple<nb::bytes, std::uintptr_t, std::size_t>>& images) {
  std::vector<GivenImage> files;
  files.reserve(images.size());
  for (const auto& [path, address, size] : images) {
    const auto* data = reinterpret_cast<const std::byte*>(address);  // NOLINT: Arrow gives addresses as numbers
    files.push_back({std::string(path.c_str(), path.size()), {data, size}});
  }
  return self.add(std::move(files));
}

// A Python object that a dataset holds. It is released with the last dataset or loader on it, with the GIL: engine
// threads never outlive their loader, except one stuck in a map() function, which releases nothing; and batches hold no
// dataset.
std::shared_ptr<void> held(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* o) { delete o; }};
}

// name, owner, address, rows, stride in bytes, dtype, shape of a row; for a ragged array, a buffer of int64 offsets, or
// None, and the bytes of its padding value; NamedArray::kind
using ArrayRow = std::tuple<std::string, nb::object, std::uintptr_t, std::uint64_t, std::int64_t, std::string,
                            std::vector<std::int64_t>, nb::object, nb::bytes, std::string>;

std::vector<std::int64_t> offsets_of(const nb::object& buffer) {
  if (buffer.is_none()) return {};
  const HeldBytes held(buffer);
  std::vector<std::int64_t> offsets(held.bytes().size() / sizeof(std::int64_t));
  std::memcpy(offsets.data(), held.bytes().data(), offsets.size() * sizeof(std::int64_t));
  return offsets;
}

Element element_of_bytes(const nb::bytes& number) {
  Element element{};
  std::memcpy(element.data(), number.data(), std::min(element.size(), number.size()));
  return element;
}

Dataset arrays_dataset(const std::vector<ArrayRow>& rows) {
  std::vector<NamedArray> named;
  for (const auto& [name, owner, address, count, stride, dtype, shape, offsets, pad, kind] : rows) {
    if (shape.size() >= Shape::kMaxDims)
      raise_config("arrays: \"" + name + "\" has more than " + std::to_string(Shape::kMaxDims) + " dimensions");
    Shape row;
    for (std::size_t i = shape.size(); i-- > 0;) row = row.with_front(shape[i]);
    const auto* data =
        reinterpret_cast<const std::byte*>(address);  // NOLINT: NumPy and torch give addresses as numbers
    named.push_back({name,
                     data,
                     count,
                     static_cast<std::ptrdiff_t>(stride),
                     {dtype_of(dtype), row},
                     held(owner),
                     offsets_of(offsets),
                     element_of_bytes(pad),
                     kind});
  }
  return unwrap(arrays(std::move(named)));
}

// Path, offset, the ends of documents as u64 or None, and the path of the loss mask or "".
using GivenTokens = std::tuple<std::string, std::uint64_t, std::optional<nb::bytes>, std::string>;

Dataset tokens_dataset(const std::vector<GivenTokens>& files, std::uint64_t window, std::uint64_t stride,
                       const std::string& stored, const std::string& output, std::uint64_t vocabulary,
                       std::optional<std::int64_t> separator, const std::string& documents, std::uint64_t shortest,
                       std::int64_t pad, std::optional<std::uint64_t> memory) {
  std::vector<TokenFile> named;
  for (const auto& [path, offset, given, mask] : files) {
    TokenFile& file = named.emplace_back(TokenFile{path, offset, std::nullopt, mask});
    if (!given) continue;
    file.ends.emplace(given->size() / sizeof(std::uint64_t));
    std::memcpy(file.ends->data(), given->c_str(), file.ends->size() * sizeof(std::uint64_t));
  }
  const TokenOptions options{window,     stride,    dtype_of(stored),        dtype_of(output),
                             vocabulary, separator, documents_of(documents), shortest,
                             pad,        memory};
  return unwrap(without_gil([&] { return tokens(named, options); }));
}

Dataset mixed_dataset(const std::vector<Dataset>& datasets, std::vector<double> weights, const std::string& until,
                      std::uint64_t samples) {
  return unwrap(mix(datasets, {std::move(weights), mix_until_of(until), samples}));
}

Dataset subset_of(const Dataset& dataset, std::vector<std::uint64_t> indices) {
  return unwrap(without_gil([&] { return dataset.subset(std::move(indices)); }));
}

std::vector<Dataset> parts_of(const Dataset& dataset, const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                              const std::vector<std::int64_t>& classes) {
  return unwrap(without_gil([&] { return dataset.split(counts, seed, classes); }));
}

std::vector<std::int64_t> numbers_of(const Dataset& dataset, const std::string& field) {
  return unwrap(without_gil([&] { return dataset.numbers(field); }));
}

// Texts are bytes: they may not be UTF-8.
nb::list values_of(const Dataset& dataset, const std::vector<std::string>& fields) {
  const auto in_python = [](const StoredValue& value) -> nb::object {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return nb::cast(*number);
    if (const auto* number = std::get_if<double>(&value)) return nb::cast(*number);
    if (const auto* text = std::get_if<std::string>(&value)) return nb::bytes(text->data(), text->size());
    return nb::none();
  };
  nb::list columns;
  for (const auto& values : unwrap(without_gil([&] { return dataset.values(fields); }))) {
    nb::list column;
    for (const StoredValue& value : values) column.append(in_python(value));
    columns.append(column);
  }
  return columns;
}

// `times` copies of all samples, one copy after the other.
Dataset repeated(const Dataset& dataset, std::uint64_t times) {
  return unwrap(without_gil([&] {
    std::vector<std::uint64_t> indices(dataset.size() * times);
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i % dataset.size();
    return dataset.subset(std::move(indices));
  }));
}

// fields: (name, has labels). samples: per field (path, array, file with the list of chunks).
Dataset volumes_dataset(std::string name, const std::vector<std::tuple<std::string, bool>>& fields,
                        std::vector<std::vector<std::tuple<std::string, std::string, std::string>>> samples,
                        std::string index_directory, std::string cache_directory, std::uint64_t cache_bytes,
                        double cache_share) {
  VolumeOptions options{.name = std::move(name),
                        .index_directory = std::move(index_directory),
                        .cache_directory = std::move(cache_directory)};
  options.cache_limit = {cache_bytes, cache_share};
  for (const auto& [field, has_labels] : fields) options.fields.push_back({field, has_labels});
  for (auto& sample : samples) {
    auto& volumes = options.samples.emplace_back();
    for (auto& [path, array, chunks] : sample)
      volumes.push_back({std::move(path), std::move(array), std::move(chunks)});
  }
  return unwrap(without_gil([&] { return volumes(std::move(options)); }));
}

Dataset patches_dataset(const Dataset& dataset, std::uint64_t patches) {
  return unwrap(without_gil([&] { return dataset.patches({.patches = patches}); }));
}

Dataset grid_dataset(const Dataset& dataset, std::vector<std::int64_t> size, std::vector<std::int64_t> overlap,
                     bool pad) {
  return unwrap(without_gil([&] {
    return dataset.patches({.grid = PatchOptions::Grid{std::move(size), std::move(overlap), pad}});
  }));
}

}  // namespace

void bind_sources(nb::module_& module) {
  nb::class_<GivenFiles>(module, "GivenFiles")
      .def(nb::init<std::string>(), "name"_a)
      .def_prop_ro("dataset", &GivenFiles::dataset)
      .def("add", &add_paths, "paths"_a)
      .def("add_images", &add_images, "images"_a)
      .def(
          "keep", [](GivenFiles& self, nb::object owner) { self.keep(held(std::move(owner))); }, "owner"_a)
      .def("forget", &GivenFiles::forget, "first"_a)
      .def("forget_all", &GivenFiles::forget_all);
  module.def("arrays", &arrays_dataset, "arrays"_a);
  module.def("mix", &mixed_dataset, "datasets"_a, "weights"_a, "until"_a, "samples"_a);
  module.def("subset", &subset_of, "dataset"_a, "indices"_a);
  module.def("split", &parts_of, "dataset"_a, "counts"_a, "seed"_a, "classes"_a);
  module.def("repeat", &repeated, "dataset"_a, "times"_a);
  module.def("numbers", &numbers_of, "dataset"_a, "field"_a);
  module.def(
      "json_value",
      [](const nb::bytes& stored, const std::string& field, std::uint64_t sample) {
        const std::span bytes(static_cast<const std::byte*>(stored.data()), stored.size());
        return stored_row(bytes, Content::kJson, field, sample);
      },
      "stored"_a, "field"_a, "sample"_a, nb::sig("def json_value(stored: bytes, field: str, sample: int) -> Any"));
  module.def("values", &values_of, "dataset"_a, "fields"_a,
             nb::sig("def values(dataset: Dataset, fields: collections.abc.Sequence[str]) -> "
                     "list[list[int | float | bytes | None]]"));
  module.def("volumes", &volumes_dataset, "name"_a, "fields"_a, "samples"_a, "index_directory"_a, "cache_directory"_a,
             "cache_bytes"_a, "cache_share"_a);
  module.def("patches", &patches_dataset, "dataset"_a, "patches"_a);
  module.def("grid_patches", &grid_dataset, "dataset"_a, "size"_a, "overlap"_a, "pad"_a);
  module.def("tokens", &tokens_dataset, "files"_a, "window"_a, "stride"_a, "stored"_a, "output"_a, "vocabulary"_a,
             "separator"_a.none(), "documents"_a, "shortest"_a, "pad"_a, "memory"_a.none());
}

}  // namespace feedline::python
