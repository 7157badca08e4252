// SPDX-License-Identifier: Apache-2.0
#include "feedline/dataset.h"
#include "feedline/rows.h"
#include "feedline/sources/volumes.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "consumer/loader_impl.h"
#include "pipeline/pipeline.h"
#include "pipeline/sample/decode_limit.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/sample_reader.h"
#include "pipeline/sample/source.h"
#include "pipeline/sample/view_point.h"

namespace feedline {

using base::guarded;

struct Dataset::Impl {
  static constexpr auto kBatches = pipeline::RowsFor::kBatches;

  pipeline::Source source;
  std::vector<Operation> operations = {};
  std::optional<pipeline::CachePoint> cache = {};
  std::vector<pipeline::Collation> collations = {};
  std::shared_ptr<const pipeline::MapPoint> map = nullptr;
  std::shared_ptr<const pipeline::ViewPoint> views = nullptr;

  Result<void> check() const { return pipeline::check_operations(source, operations, cache, map.get(), views.get()); }
  // Device caches are only for loaders: a sample on the host is decoded without them, with the same result.
  Result<std::shared_ptr<const pipeline::Recipe>> recipe(std::optional<DType> dtype, Layout layout,
                                                         const pipeline::OnDevice& there = {},
                                                         pipeline::RowsFor rows_for = kBatches) const {
    return recipe_with(cache && !pipeline::is_on_device(*cache) ? cache : std::nullopt, dtype, layout, there, rows_for);
  }
  Result<std::shared_ptr<const pipeline::Recipe>> sample_recipe() const {
    return recipe(std::nullopt, Layout::kNchw, {}, pipeline::RowsFor::kSingleSamples);
  }
  // Returns the recipe for batches on that device.
  Result<std::shared_ptr<const pipeline::Recipe>> loader_recipe(std::optional<DType> dtype, Layout layout,
                                                                device::Device& device) const {
    const bool takes_memory = pipeline::decodes_there(operations) || (cache && pipeline::is_on_device(*cache));
    if (takes_memory) FEEDLINE_CHECK_OK(recipe(dtype, layout));  // report other errors first
    FEEDLINE_TRY(const pipeline::OnDevice on_it, pipeline::on_device(device, operations));
    if (!cache || !pipeline::is_on_device(*cache)) return opened_recipe(dtype, layout, on_it);
    FEEDLINE_TRY(const pipeline::CachePoint there, pipeline::cache_on(device, *cache, source));
    return recipe_with(there, dtype, layout, on_it, kBatches);
  }
  // For reading samples.
  Result<std::shared_ptr<const pipeline::Recipe>> opened_recipe(std::optional<DType> dtype, Layout layout,
                                                                const pipeline::OnDevice& there = {}) const {
    FEEDLINE_TRY(auto made, recipe(dtype, layout, there));
    if (cache) FEEDLINE_CHECK_OK(pipeline::open_cache(*cache));
    return made;
  }

 private:
  Result<std::shared_ptr<const pipeline::Recipe>> recipe_with(const std::optional<pipeline::CachePoint>& cache_point,
                                                              std::optional<DType> dtype, Layout layout,
                                                              const pipeline::OnDevice& there,
                                                              pipeline::RowsFor rows_for) const {
    return pipeline::make_recipe(source, operations, dtype, layout, cache_point, collations, map.get(), views.get(),
                                 there, rows_for);
  }
};

struct SampleReader::Impl {
  pipeline::SampleReader reader;
};

SampleReader::SampleReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;
SampleReader::~SampleReader() = default;

const Schema& SampleReader::schema() const { return impl_->reader.schema(); }

Result<Sample> SampleReader::read(GivenSample given, std::uint64_t seed, std::uint64_t epoch) {
  return guarded([&] { return impl_->reader.read(given, seed, epoch); });
}

Result<Sample> SampleReader::read(std::span<const std::byte> encoded, std::uint64_t draw, std::uint64_t seed,
                                  std::uint64_t epoch) {
  return guarded([&] { return impl_->reader.read(encoded, {seed, epoch, draw}); });
}

Result<Sample> SampleReader::read(const GivenPixels& pixels, std::uint64_t draw, std::uint64_t seed,
                                  std::uint64_t epoch) {
  return guarded([&] { return impl_->reader.read(pixels, {seed, epoch, draw}); });
}

Dataset::Dataset(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::uint64_t Dataset::size() const { return impl_->source.size(); }
const std::string& Dataset::source() const { return impl_->source.name(); }
std::string Dataset::format() const { return std::string(impl_->source.format_name()); }
const std::vector<std::string>& Dataset::classes() const { return impl_->source.classes(); }
std::vector<UnopenedColumn> Dataset::unopened() const { return impl_->source.unopened(); }
std::vector<FieldRemark> Dataset::remarks() const { return impl_->source.remarks(); }
const std::vector<Operation>& Dataset::operations() const { return impl_->operations; }
std::vector<std::uint64_t> Dataset::shard_ends() const { return impl_->source.shard_ends(); }
std::vector<std::uint64_t> Dataset::block_ends() const { return impl_->source.block_ends(); }
std::uint64_t Dataset::fingerprint() const { return impl_->source.fingerprint(); }
std::string Dataset::key(std::uint64_t index) const { return impl_->source.key(index); }

Dataset Dataset::with(Operation operation) const {
  auto next = std::make_shared<Impl>(*impl_);
  next->operations.push_back(std::move(operation));
  return Dataset(std::move(next));
}

Result<Dataset> Dataset::cache(const std::string& where, std::uint64_t budget) const {
  return guarded([&]() -> Result<Dataset> {
    if (impl_->map) return config_error("cache: a cache stores the samples before map; place cache before map");
    if (impl_->views) return config_error("cache: a cache stores the samples before views; place cache before views");
    if (impl_->cache) return config_error("cache: this dataset already has a cache");
    auto next = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(next->cache, pipeline::make_cache_point(where, budget, impl_->source, impl_->operations));
    return Dataset(std::move(next));
  });
}

Result<Dataset> Dataset::collate(BatchForm form, std::vector<std::string> fields) const {
  return guarded([&]() -> Result<Dataset> {
    auto next = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(auto collation, pipeline::make_collation(form, std::move(fields), impl_->source, impl_->map.get(),
                                                          impl_->views.get()));
    next->collations.push_back(std::move(collation));
    return Dataset(std::move(next));
  });
}

Result<Dataset> Dataset::map(std::shared_ptr<const SampleFunction> function) const {
  return guarded([&]() -> Result<Dataset> {
    auto next = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(next->map, pipeline::MapPoint::make(std::move(function), impl_->source, impl_->operations.size(),
                                                     impl_->map.get(), impl_->views.get()));
    return Dataset(std::move(next));
  });
}

Result<Dataset> Dataset::subset(std::vector<std::uint64_t> indices) const {
  return guarded([&]() -> Result<Dataset> {
    if (impl_->cache)
      return config_error("subset: the cache covers the whole dataset; take the subset first, then cache");
    auto next = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(next->source, impl_->source.subset(std::move(indices)));
    return Dataset(std::move(next));
  });
}

Result<Dataset> Dataset::patches(const PatchOptions& options) const {
  return guarded([&]() -> Result<Dataset> {
    auto next = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(next->source, impl_->source.patches(options));
    return Dataset(std::move(next));
  });
}

Result<std::vector<Dataset>> Dataset::split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                            const std::vector<std::int64_t>& classes) const {
  return guarded([&]() -> Result<std::vector<Dataset>> {
    if (impl_->cache)
      return config_error("split: the cache covers the whole dataset; split first, then cache the parts");
    FEEDLINE_TRY(auto sources, impl_->source.split(counts, seed, classes));
    std::vector<Dataset> parts;
    for (pipeline::Source& source : sources) {
      auto next = std::make_shared<Impl>(*impl_);
      next->source = std::move(source);
      parts.push_back(Dataset(std::move(next)));
    }
    return parts;
  });
}

Result<std::vector<std::int64_t>> Dataset::numbers(const std::string& field) const {
  return guarded([&] { return impl_->source.numbers(field); });
}

Result<std::vector<std::vector<StoredValue>>> Dataset::values(const std::vector<std::string>& fields) const {
  return guarded([&] { return impl_->source.values(fields); });
}

Result<FieldValues> Dataset::field_values(const std::string& field) const {
  return guarded([&] { return impl_->source.field_values(field); });
}

Result<Inspection> Dataset::inspect() const {
  return guarded([&] { return impl_->source.inspect(); });
}

namespace {

Result<Dataset> with_views(const Dataset::Impl& impl, Result<pipeline::ViewPoint> made) {
  if (!made) return std::unexpected(std::move(made).error());
  auto next = std::make_shared<Dataset::Impl>(impl);
  next->views = std::make_shared<const pipeline::ViewPoint>(*std::move(made));
  FEEDLINE_CHECK_OK(next->check());
  return Dataset(std::move(next));
}

}  // namespace

Result<Dataset> Dataset::views(std::vector<View> views, const std::string& field) const {
  return guarded([&]() -> Result<Dataset> {
    if (impl_->views) return config_error("views: this dataset already has views");
    return with_views(*impl_, pipeline::make_view_point(std::move(views), field, impl_->source,
                                                        impl_->operations.size(), impl_->map.get()));
  });
}

Result<Dataset> Dataset::five_crop(Size size, const std::string& field) const {
  return guarded([&]() -> Result<Dataset> {
    if (impl_->views) return config_error("five_crop: this dataset already has views");
    return with_views(*impl_, pipeline::make_corner_crops(size, pipeline::Mirrored::kNot, field, impl_->source,
                                                          impl_->operations.size(), impl_->map.get()));
  });
}

Result<Dataset> Dataset::ten_crop(Size size, bool vertical_flip, const std::string& field) const {
  return guarded([&]() -> Result<Dataset> {
    if (impl_->views) return config_error("ten_crop: this dataset already has views");
    const auto mirrored = vertical_flip ? pipeline::Mirrored::kVertically : pipeline::Mirrored::kHorizontally;
    return with_views(*impl_, pipeline::make_corner_crops(size, mirrored, field, impl_->source,
                                                          impl_->operations.size(), impl_->map.get()));
  });
}

std::optional<std::pair<std::string, std::size_t>> Dataset::viewed() const {
  if (!impl_->views) return {};
  return std::pair(impl_->views->text, impl_->views->position);
}

std::optional<std::pair<std::string, std::size_t>> Dataset::cached() const {
  if (!impl_->cache) return {};
  return std::pair(impl_->cache->where, impl_->cache->position);
}

Result<void> Dataset::check() const {
  return guarded([&] { return impl_->check(); });
}

Result<Schema> Dataset::schema() const {
  return guarded([&]() -> Result<Schema> {
    if (const auto recipe = impl_->recipe(std::nullopt, Layout::kNchw); recipe) return (*recipe)->schema;
    FEEDLINE_TRY(const auto recipe, impl_->sample_recipe());  // only batches need one shape
    return recipe->schema;
  });
}

std::string Dataset::take_image_depth() const { return impl_->source.seen_depth()->take(); }

std::vector<FieldRole> Dataset::roles() const {
  auto roles = pipeline::roles_of(impl_->source, impl_->operations);
  if (impl_->map) std::erase_if(roles, [&](const FieldRole& role) { return impl_->map->takes(role.name); });
  return roles;
}

std::string Dataset::explain() const {
  std::string text = format() + ", " + std::to_string(size()) + " samples, " + source() + "\n";
  if (const std::string summary = impl_->source.summary(); !summary.empty()) text += summary + "\n";
  auto recipe = guarded([&] { return impl_->recipe(std::nullopt, Layout::kNchw); });
  if (!recipe) {
    const std::string message = recipe.error().message();
    recipe = guarded([&] { return impl_->sample_recipe(); });
    text += std::string(recipe ? "incomplete for batches: " : "incomplete: ") + message + "\n";
    if (!recipe) return text;
  }
  for (const std::string& line : pipeline::explain_images(**recipe)) text += line + "\n";
  for (const std::string& line : pipeline::explain_map(**recipe)) text += line + "\n";
  return text;
}

Result<Sample> Dataset::sample(std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) const {
  return guarded([&]() -> Result<Sample> {
    FEEDLINE_TRY(auto recipe, impl_->sample_recipe());
    if (impl_->cache) FEEDLINE_CHECK_OK(pipeline::open_cache(*impl_->cache));
    return pipeline::SampleReader(std::move(recipe)).read(GivenSample{index, index}, seed, epoch);
  });
}

Result<SampleReader> Dataset::reader(Layout layout) const {
  return guarded([&]() -> Result<SampleReader> {
    FEEDLINE_TRY(auto recipe, impl_->opened_recipe(std::nullopt, layout));
    return SampleReader(std::make_unique<SampleReader::Impl>(pipeline::SampleReader(std::move(recipe))));
  });
}

Result<std::vector<DrawnValue>> Dataset::draw(std::uint64_t index, std::uint64_t seed, std::uint64_t epoch) const {
  return guarded([&]() -> Result<std::vector<DrawnValue>> {
    FEEDLINE_TRY(auto recipe, impl_->sample_recipe());
    return pipeline::SampleReader(std::move(recipe)).draw({seed, epoch, index});
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
  return guarded([&] { return impl_->source.encoded(index); });
}

Result<SampleFiles> Dataset::files(std::uint64_t index) const {
  return guarded([&] { return impl_->source.files(index); });
}

Result<SampleFileSizes> Dataset::file_sizes(std::uint64_t index) const {
  return guarded([&] { return impl_->source.file_sizes(index); });
}

Result<Dataset::Checkpoints> Dataset::make_checkpoints(int threads) const {
  return guarded([&]() -> Result<Checkpoints> {
    FEEDLINE_TRY(CheckpointStats made, pipeline::make_checkpoints(impl_->source, threads));
    return Checkpoints{made.images, made.bytes, std::move(made.path)};
  });
}

Result<DecodeLimit> Dataset::measure_decode(std::uint64_t images, int threads, std::uint64_t seed) const {
  return guarded([&]() -> Result<DecodeLimit> {
    FEEDLINE_TRY(auto recipe, impl_->recipe(std::nullopt, Layout::kNchw));
    return pipeline::measure_decode(std::move(recipe), images, threads, seed);
  });
}

Result<Loader> Dataset::loader(const LoaderOptions& options) const {
  return guarded([&]() -> Result<Loader> {
    FEEDLINE_TRY(auto device, pipeline::device_of(options.cuda_device));
    FEEDLINE_TRY(auto recipe, impl_->loader_recipe(options.dtype, options.layout, *device));
    FEEDLINE_TRY(auto plan, pipeline::plan_pipeline(*recipe, options));
    FEEDLINE_TRY(auto own, pipeline::of_loader(std::move(recipe)));
    return Loader(std::make_unique<Loader::Impl>(std::move(own), options, std::move(plan), std::move(device)));
  });
}

Result<Loader> Dataset::given_loader(const LoaderOptions& options) const {
  return guarded([&]() -> Result<Loader> {
    FEEDLINE_TRY(auto device, pipeline::device_of(options.cuda_device));
    FEEDLINE_TRY(auto recipe, impl_->loader_recipe(options.dtype, options.layout, *device));
    FEEDLINE_TRY(auto plan, pipeline::plan_given(*recipe, options));
    FEEDLINE_TRY(auto own, pipeline::of_loader(std::move(recipe)));
    return Loader(std::make_unique<Loader::Impl>(std::move(own), options, std::move(plan), std::move(device)));
  });
}

Result<pipeline::Source> Dataset::packable() const {
  if (!impl_->operations.empty())
    return config_error("pack_sequences: not supported after " + std::string(name_of(impl_->operations.front())) +
                        "; call pack_sequences on the dataset without operations");
  if (impl_->map)
    return config_error(
        "pack_sequences: the results of map have unknown lengths; write the tokens in advance with `feedline "
        "tokenize`");
  if (impl_->cache) return config_error("pack_sequences: not supported after cache, which is for images");
  if (impl_->views) return config_error("pack_sequences: not supported after views, which are for images");
  return impl_->source;
}

std::span<const std::string_view> label_names() { return pipeline::label_names(); }

Result<Dataset> open(const std::string& source, const OpenOptions& options) {
  return guarded([&]() -> Result<Dataset> {
    FEEDLINE_TRY(auto opened, pipeline::Source::open(source, options));
    return Dataset(std::make_shared<Dataset::Impl>(std::move(opened)));
  });
}

Result<Dataset> arrays(std::vector<NamedArray> arrays) {
  return guarded([&]() -> Result<Dataset> {
    FEEDLINE_TRY(auto opened, pipeline::Source::arrays(std::move(arrays)));
    return Dataset(std::make_shared<Dataset::Impl>(std::move(opened)));
  });
}

Result<Dataset> rows(RowOptions options) {
  return guarded([&]() -> Result<Dataset> {
    FEEDLINE_TRY(auto opened, pipeline::Source::rows(std::move(options)));
    return Dataset(std::make_shared<Dataset::Impl>(std::move(opened)));
  });
}

Result<Dataset> episodes(EpisodeOptions options) {
  return guarded([&]() -> Result<Dataset> {
    std::vector<pipeline::Source> images;
    for (const EpisodeColumn& column : options.columns)
      if (const auto* const of = std::get_if<EpisodeImages>(&column)) images.push_back(of->images.impl_->source);
    FEEDLINE_TRY(auto opened, pipeline::Source::episodes(std::move(options), images));
    return Dataset(std::make_shared<Dataset::Impl>(std::move(opened)));
  });
}

Result<TableCells> read_table(const std::string& source) {
  return guarded([&] { return pipeline::read_table(source); });
}

Result<Dataset> volumes(VolumeOptions options) {
  return guarded([&]() -> Result<Dataset> {
    FEEDLINE_TRY(auto opened, pipeline::Source::volumes(std::move(options)));
    return Dataset(std::make_shared<Dataset::Impl>(Dataset::Impl{std::move(opened)}));
  });
}

Result<Dataset> tokens(const std::vector<TokenFile>& files, const TokenOptions& options) {
  return guarded([&]() -> Result<Dataset> {
    FEEDLINE_TRY(auto opened, pipeline::Source::tokens(files, options));
    return Dataset(std::make_shared<Dataset::Impl>(std::move(opened)));
  });
}

Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options) {
  return guarded([&]() -> Result<Dataset> {
    std::vector<pipeline::Source> parts;
    for (const Dataset& dataset : datasets) {
      const Dataset::Impl& part = *dataset.impl_;
      if (part.source.is_mixture()) return config_error("mix: a dataset is itself a mixture; mix all datasets at once");
      if (part.cache) return config_error("mix: a dataset has a cache; cache the mixture instead");
      if (part.views) return config_error("mix: a dataset has views; make views of the mixture instead");
      if (part.map) return config_error("mix: a dataset has a map; map the mixture instead");
      if (!part.collations.empty())
        return config_error("mix: a dataset has its own collate; collate the mixture instead");
      if (!std::ranges::equal(part.operations, datasets.front().operations(), {}, &describe, &describe))
        return config_error("mix: the operations of the datasets differ; apply them to the mixture instead");
      parts.push_back(part.source);
    }
    FEEDLINE_TRY(auto mixed, pipeline::Source::mix(parts, options));
    return Dataset(std::make_shared<Dataset::Impl>(std::move(mixed), datasets.front().operations()));
  });
}

struct GivenFiles::Impl {
  pipeline::GivenSource files;
};

GivenFiles::GivenFiles(std::string name) : impl_(std::make_shared<Impl>(pipeline::GivenSource(std::move(name)))) {}

Dataset GivenFiles::dataset() const { return Dataset(std::make_shared<Dataset::Impl>(impl_->files.source())); }

std::uint64_t GivenFiles::add(std::vector<GivenImage> files) { return impl_->files.add(std::move(files)); }
void GivenFiles::keep(std::shared_ptr<const void> owner) { impl_->files.keep(std::move(owner)); }
void GivenFiles::forget(std::uint64_t first) { impl_->files.forget(first); }
void GivenFiles::forget_all() { impl_->files.forget_all(); }

Result<Inspection> inspect(const std::string& source, const OpenOptions& options) {
  return guarded([&] { return pipeline::inspect_source(source, options); });
}

}  // namespace feedline
