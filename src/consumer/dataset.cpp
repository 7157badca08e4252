// SPDX-License-Identifier: Apache-2.0
#include "feedline/dataset.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "consumer/loader_impl.h"
#include "pipeline/decode_limit.h"
#include "pipeline/pipeline.h"
#include "pipeline/sample_loader.h"
#include "pipeline/source.h"

namespace feedline {

using base::guarded;

struct Dataset::Impl {
  std::string source;
  std::shared_ptr<const format::Format> format;
  std::shared_ptr<const plan::Mixture> mixture;  // nullptr: every sample once an epoch
  std::vector<Operation> operations;
  std::optional<pipeline::CachePoint> cache;

  Result<std::shared_ptr<const pipeline::Recipe>> recipe(std::optional<DType> dtype, Layout layout) const {
    return pipeline::make_recipe(source, format, mixture, operations, dtype, layout, cache);
  }
  // For reading samples.
  Result<std::shared_ptr<const pipeline::Recipe>> opened_recipe(std::optional<DType> dtype, Layout layout) const {
    FEEDLINE_TRY(auto made, recipe(dtype, layout));
    if (cache) FEEDLINE_CHECK_OK(cache->pixels->open());
    return made;
  }
  Result<void> check_index(std::uint64_t index) const {
    if (index < format->size()) return {};
    return config_error("sample " + std::to_string(index) + " is out of range: the data set holds " +
                        std::to_string(format->size()));
  }
};

struct SampleReader::Impl {
  Impl(std::shared_ptr<const Dataset::Impl> dataset_in, std::shared_ptr<const pipeline::Recipe> recipe_in)
      : dataset(std::move(dataset_in)), recipe(std::move(recipe_in)), loader(recipe, nullptr) {}

  const std::shared_ptr<const Dataset::Impl> dataset;
  const std::shared_ptr<const pipeline::Recipe> recipe;
  pipeline::SampleLoader loader;
};

SampleReader::SampleReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;
SampleReader::~SampleReader() = default;

const Schema& SampleReader::schema() const { return impl_->recipe->schema; }

namespace {

// A sample of this schema with nothing in it yet, and where its fields are to be written.
Sample empty_sample(const Schema& schema, std::vector<ArrayView>& rows) {
  Sample sample;
  for (const FieldSpec& field : schema) {
    sample.fields.push_back({field.name, field.array, std::vector<std::byte>(field.array.bytes())});
    rows.push_back({sample.fields.back().data.data(), field.array});
  }
  return sample;
}

}  // namespace

Result<Sample> SampleReader::read(GivenSample given, std::uint64_t seed, std::uint64_t epoch) {
  return guarded([&]() -> Result<Sample> {
    FEEDLINE_CHECK_OK(impl_->dataset->check_index(given.index));
    std::vector<ArrayView> rows;
    Sample sample = empty_sample(pipeline::schema_of(*impl_->recipe, {&given.index, 1}), rows);
    FEEDLINE_CHECK_OK(impl_->loader.load({given.index, {seed, epoch, given.draw}, rows}));
    return sample;
  });
}

Result<Sample> SampleReader::read(std::span<const std::byte> encoded, std::uint64_t draw, std::uint64_t seed,
                                  std::uint64_t epoch) {
  return guarded([&]() -> Result<Sample> {
    const auto& fields = impl_->recipe->format->fields();
    if (fields.size() != 1 || fields[0].kind != format::FieldKind::kImage)
      return config_error("read: the samples of this data set are more than one image");
    std::vector<ArrayView> rows;
    Sample sample = empty_sample(schema(), rows);
    FEEDLINE_CHECK_OK(impl_->loader.load_image({seed, epoch, draw}, encoded, rows[0]));
    return sample;
  });
}

Dataset::Dataset(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::uint64_t Dataset::size() const { return impl_->format->size(); }
const std::string& Dataset::source() const { return impl_->source; }
std::string Dataset::format() const { return std::string(impl_->format->name()); }
const std::vector<std::string>& Dataset::classes() const { return impl_->format->classes(); }
const std::vector<Operation>& Dataset::operations() const { return impl_->operations; }
std::vector<std::uint64_t> Dataset::shard_ends() const { return impl_->format->shard_ends(); }
std::uint64_t Dataset::fingerprint() const { return pipeline::fingerprint_of(*impl_->format, impl_->mixture.get()); }
std::string Dataset::key(std::uint64_t index) const {
  return index < size() ? impl_->format->where(index).key : std::string();
}

Dataset Dataset::with(Operation operation) const {
  auto next = std::make_shared<Impl>(*impl_);
  next->operations.push_back(std::move(operation));
  return Dataset(std::move(next));
}

Result<Dataset> Dataset::cache(const std::string& where, std::uint64_t budget) const {
  return guarded([&]() -> Result<Dataset> {
    if (impl_->cache) return config_error("cache: there is one in this chain already");
    auto next = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(auto pixels,
                 pipeline::PixelCache::make(where, budget, source(), *impl_->format, fingerprint(), impl_->operations));
    next->cache = pipeline::CachePoint{std::move(pixels), impl_->operations.size()};
    return Dataset(std::move(next));
  });
}

std::optional<std::pair<std::string, std::size_t>> Dataset::cached() const {
  if (!impl_->cache) return {};
  return std::pair(impl_->cache->pixels->where(), impl_->cache->position);
}

Result<void> Dataset::check() const {
  return guarded([&] { return pipeline::check_operations(impl_->operations, impl_->cache); });
}

Result<Schema> Dataset::schema() const {
  return guarded([&]() -> Result<Schema> {
    FEEDLINE_TRY(const auto recipe, impl_->recipe(std::nullopt, Layout::kNchw));
    return recipe->schema;
  });
}

std::string Dataset::explain() const {
  std::string text = format() + ", " + std::to_string(size()) + " samples, " + source() + "\n";
  if (const std::string summary = impl_->format->summary(); !summary.empty()) text += summary + "\n";
  const auto recipe = guarded([&] { return impl_->recipe(std::nullopt, Layout::kNchw); });
  if (!recipe) return text + "not complete: " + recipe.error().message() + "\n";
  for (const std::string& line : pipeline::explain_images(**recipe)) text += line + "\n";
  return text;
}

Result<Sample> Dataset::sample(std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) const {
  return guarded([&]() -> Result<Sample> {
    FEEDLINE_TRY(auto one, reader());
    return one.read({index, index}, seed, epoch);
  });
}

Result<SampleReader> Dataset::reader(Layout layout) const {
  return guarded([&]() -> Result<SampleReader> {
    FEEDLINE_TRY(auto recipe, impl_->opened_recipe(std::nullopt, layout));
    return SampleReader(std::make_unique<SampleReader::Impl>(impl_, std::move(recipe)));
  });
}

Result<std::vector<DrawnValue>> Dataset::draw(std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) const {
  return guarded([&]() -> Result<std::vector<DrawnValue>> {
    FEEDLINE_CHECK_OK(impl_->check_index(index));
    FEEDLINE_TRY(const auto recipe, impl_->recipe(std::nullopt, Layout::kNchw));
    pipeline::SampleLoader loader(recipe, nullptr);  // draw() below refuses what has no image
    FEEDLINE_TRY(const auto drawn, loader.draw({seed, epoch, index}));
    return recipe->chain->values(*drawn.drawing);
  });
}

Result<std::vector<DrawnValue>> Dataset::draw(Size image, std::uint64_t sample, std::uint64_t seed,
                                              std::uint64_t epoch) const {
  return guarded([&]() -> Result<std::vector<DrawnValue>> {
    FEEDLINE_TRY(const auto recipe, impl_->recipe(std::nullopt, Layout::kNchw));
    return pipeline::draw_values(*recipe, image, {seed, epoch, sample});
  });
}

Result<std::vector<std::byte>> Dataset::encoded(std::uint64_t index) const {
  return guarded([&]() -> Result<std::vector<std::byte>> {
    FEEDLINE_CHECK_OK(impl_->check_index(index));
    return pipeline::read_encoded(*impl_->format, impl_->source, index);
  });
}

Result<SampleFiles> Dataset::files(std::uint64_t index) const {
  return guarded([&]() -> Result<SampleFiles> {
    FEEDLINE_CHECK_OK(impl_->check_index(index));
    auto sample = impl_->format->files(index);
    if (!sample)
      return std::unexpected(pipeline::with_place(std::move(sample).error(), *impl_->format, impl_->source, index));
    return sample;
  });
}

Result<DecodeLimit> Dataset::measure_decode(std::uint64_t images, int threads, std::uint64_t seed) const {
  return guarded([&]() -> Result<DecodeLimit> {
    FEEDLINE_TRY(auto recipe, impl_->recipe(std::nullopt, Layout::kNchw));
    return pipeline::measure_decode(std::move(recipe), images, threads, seed);
  });
}

Result<Loader> Dataset::loader(LoaderOptions options) const {
  return guarded([&]() -> Result<Loader> {
    FEEDLINE_TRY(auto recipe, impl_->opened_recipe(options.dtype, options.layout));
    FEEDLINE_TRY(auto plan, pipeline::plan_pipeline(*recipe, options));
    return Loader(std::make_unique<Loader::Impl>(std::move(recipe), std::move(plan)));
  });
}

Result<Dataset> open(const std::string& source, const OpenOptions& options) {
  return guarded([&]() -> Result<Dataset> {
    auto impl = std::make_shared<Dataset::Impl>();
    FEEDLINE_TRY(impl->format, pipeline::open_source(source, options));
    impl->source = source;
    return Dataset(std::move(impl));
  });
}

Result<Dataset> arrays(std::vector<NamedArray> arrays) {
  return guarded([&]() -> Result<Dataset> {
    auto impl = std::make_shared<Dataset::Impl>();
    FEEDLINE_TRY(impl->format, pipeline::array_source(std::move(arrays)));
    impl->source = "arrays";
    return Dataset(std::move(impl));
  });
}

Result<Dataset> tokens(const std::vector<TokenFile>& files, const TokenOptions& options) {
  return guarded([&]() -> Result<Dataset> {
    auto impl = std::make_shared<Dataset::Impl>();
    FEEDLINE_TRY(impl->format, pipeline::token_source(files, options));
    for (const TokenFile& file : files) impl->source += (impl->source.empty() ? "" : "::") + file.path;
    return Dataset(std::move(impl));
  });
}

Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options) {
  return guarded([&]() -> Result<Dataset> {
    auto impl = std::make_shared<Dataset::Impl>();
    std::vector<std::shared_ptr<const format::Format>> formats;
    std::vector<std::uint64_t> sizes;
    for (const Dataset& dataset : datasets) {
      const Dataset::Impl& part = *dataset.impl_;
      if (part.mixture) return config_error("mix: a data set is a mixture itself; mix all of them at once");
      if (part.cache) return config_error("mix: a data set has a cache; give one to the mixture");
      if (!std::ranges::equal(part.operations, datasets.front().operations(), {}, &describe, &describe))
        return config_error("mix: the operations differ; give them to the mixture");
      impl->source += (impl->source.empty() ? "mix(" : ", ") + part.source;
      formats.push_back(part.format);
      sizes.push_back(part.format->size());
    }
    impl->source += ")";
    FEEDLINE_TRY(impl->format, pipeline::joined_source(std::move(formats)));
    FEEDLINE_TRY(impl->mixture, pipeline::make_mixture(sizes, options));
    impl->operations = datasets.front().operations();
    return Dataset(std::move(impl));
  });
}

struct GivenFiles::Impl {
  std::string name;
  std::shared_ptr<format::GivenFiles> files;
};

GivenFiles::GivenFiles(std::string name)
    : impl_(std::make_shared<Impl>(Impl{std::move(name), pipeline::given_files()})) {}

Dataset GivenFiles::dataset() const {
  auto impl = std::make_shared<Dataset::Impl>();
  impl->source = impl_->name;
  impl->format = impl_->files;
  return Dataset(std::move(impl));
}

std::uint64_t GivenFiles::add(std::vector<std::string> paths) { return impl_->files->add(std::move(paths)); }
void GivenFiles::forget(std::uint64_t first) { impl_->files->forget(first); }
void GivenFiles::forget_all() { impl_->files->forget_all(); }

Result<Inspection> inspect(const std::string& source, const OpenOptions& options) {
  return guarded([&] { return pipeline::inspect_source(source, options); });
}

}  // namespace feedline
