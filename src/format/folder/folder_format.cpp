// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_format.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "format/sources/image_names.h"

namespace feedline::format {
namespace {

// Returns the fields= arguments that open the images in a folder without class folders, or "" if there are no images.
std::string fields_of_images(const FolderListing& listing) {
  std::map<std::string, std::uint64_t> images;
  for (const auto& [extension, count] : listing.stray_extensions)
    if (is_any_image_name(extension)) images.emplace(extension, count);
  if (images.empty()) return {};
  const auto pattern_of = [](const std::string& extension) { return "fields=\"{key}" + extension + "\""; };
  if (images.size() == 1) return pattern_of(images.begin()->first);
  const bool are_all = images.size() == listing.stray_extensions.size();
  std::string text;
  for (const auto& [extension, count] : images)
    text += (text.empty() ? "" : ", ") + (are_all ? extension : pattern_of(extension)) + ": " + std::to_string(count);
  // A pattern whose key is the whole name matches every file.
  return are_all ? "fields=\"image={key}:image\", which reads all files (" + text + ")"
                 : "one of these, listed with their numbers of files: " + text;
}

// Returns a message about why there is nothing to read and how to fix this.
std::string what_is_missing(const FolderListing& listing) {
  if (const std::string fields = fields_of_images(listing); !fields.empty())
    return "the folder contains images but no class folders: open images without classes with " + fields +
           "; if they have classes, put the images of each class into a separate folder, such as train/cat/1.jpg";
  if (!listing.stray_tars.empty())
    return "the folder contains tar files but no class folders: name the tar files to read, for example '" +
           listing.stray_tars.front() + "' or 'shards/{000..146}.tar'";
  return "the folder contains no images: expected one folder of images per class";
}

Result<void> check_options(const OpenOptions& options) {
  if (options.fields.empty()) return {};
  return config_error("fields: a folder of class folders always has the fields image and label; remove fields=");
}

void add_sizes(const storage::Storage& storage, const std::string& root, const FolderListing& listing,
               Inspection& inspection, Findings& findings) {
  for (std::uint64_t i = 0; i < listing.samples(); ++i) {
    const std::string key(listing.path(i));
    const std::string file = storage.below(root, key);
    const auto stat =
        listing.objects.empty() ? storage.stat(file) : Result<storage::ObjectStat>({listing.objects[i].bytes, 0, 0});
    if (!stat) {
      findings.add({"unreadable_file", Severity::kError, file, key, {}, stat.error().message()});
      continue;
    }
    if (stat->bytes == 0) findings.add({"empty_file", Severity::kError, file, key, {}, "an empty file"});
    if (listing.file == SampleFile::kImage && !is_native_image_name(key))
      findings.add({"decoded_by_pillow",
                    Severity::kWarning,
                    file,
                    key,
                    {},
                    "the engine does not decode files with this extension; Pillow decodes them, which is slower"});
    inspection.smallest_bytes = i == 0 ? stat->bytes : std::min(inspection.smallest_bytes, stat->bytes);
    inspection.largest_bytes = std::max(inspection.largest_bytes, stat->bytes);
    inspection.bytes += stat->bytes;
  }
}

// Lists class folders of images or, if they have no images, of audio files or videos.
Result<FolderListing> list_classes(const storage::Storage& storage, const std::string& root) {
  FEEDLINE_TRY(FolderListing listing, list_folder(storage, root));
  if (listing.samples() > 0) return listing;
  const auto has = [&](bool (*is_name)(std::string_view)) {
    return std::ranges::any_of(listing.extensions, [&](const auto& counted) { return is_name("." + counted.first); });
  };
  if (has(&is_audio_name)) return list_folder(storage, root, SampleFile::kAudio);
  if (has(&is_video_name)) return list_folder(storage, root, SampleFile::kVideo);
  return listing;
}

Result<FolderListing> list_complete(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(FolderListing listing, list_classes(*options.storage, without_end_slashes(source)));
  if (!listing.metadata.empty() && options.format.empty())
    return config_error("the folder contains '" + listing.metadata +
                        "', which describes its images: open it with format=\"table\", or the images only with "
                        "format=\"folder\"");
  if (listing.classes.empty()) return config_error(what_is_missing(listing));
  if (const Finding* finding = listing.findings.first_error()) {
    // This is not a data error, because the user must decide whether this folder is a class. The decision changes the
    // labels of all following classes.
    Error error = config_error(finding->text).error();
    error.where.shard = finding->shard;
    return std::unexpected(std::move(error));
  }
  return listing;
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> FolderFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_options(options));
  const std::string root = without_end_slashes(source);
  const auto format = [&](FolderIndex index) {
    return std::shared_ptr<const RecordFormat>(new FolderFormat(source, options, std::move(index)));
  };
  if (auto index =
          load_folder_index(*options.storage, root, options.index_directory, options.listing_age, options.notes))
    return format(std::move(*index));
  const auto started = std::chrono::system_clock::now();
  FEEDLINE_TRY(const FolderListing listing, list_complete(source, options));
  FolderIndex index = FolderIndex::build(root, listing);
  const bool is_wanted = is_worth_keeping(*options.storage, index.samples(), options.index_directory);
  if (is_wanted && index.folders().is_settled(*options.storage, started))
    FEEDLINE_CHECK_OK(save_folder_index(*options.storage, index, root, options.index_directory, options.notes));
  return format(std::move(index));
}

FolderFormat::FolderFormat(std::string source, OpenOptions options, FolderIndex index)
    : OpenedFormat(std::move(source), std::move(options)),
      root_(without_end_slashes(source_)),
      index_(std::move(index)) {
  const std::string first = index_.samples() > 0 ? std::string(index_.path(0)) : std::string();
  fields_ = {is_audio_name(first)   ? FieldDescription{"audio", FieldKind::kAudio}
             : is_video_name(first) ? FieldDescription{"video", FieldKind::kVideo}
                                    : FieldDescription{"image", FieldKind::kImage},
             {"label", FieldKind::kInteger}};
  fingerprint_ = index_.fingerprint();
  for (std::uint64_t label = 0; label < index_.classes(); ++label) classes_.emplace_back(index_.class_name(label));
}

std::string FolderFormat::summary() const {
  return index_.is_mapped() ? persisted_listing_text(*options_.storage, index_.folders()) : "";
}

Where FolderFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  Where where;
  where.dataset = source_;
  where.key = index_.path(index);
  where.shard = file(index);
  where.record = index;
  return where;
}

// If an error shows that an object was deleted or replaced, and the backend has no modification times, deletes the
// cached listing, so that the dataset is listed again when it is next opened.
void FolderFormat::doubt_listing(const Error& error) const {
  if (!storage::is_of_change(error) || !options_.storage->has_flat_names() || is_forgotten_.exchange(true)) return;
  forget_folder_index(*options_.storage, root_, options_.index_directory);
}

std::unexpected<Error> FolderFormat::failed(std::uint64_t index, Error error) const {
  doubt_listing(error);
  return failed_at(where(index), std::move(error));
}

Result<void> FolderFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  options_.storage->name_below(root_, index_.path(index), record.name);
  if (leaves_unread(record, fields_[0].kind, *options_.storage)) {
    record.pin.reset();
    record.fields.assign(fields_.size(), {});
    record.fields[0].storage = options_.storage.get();
    record.fields[0].object = record.name;
    record.fields[1].value = static_cast<std::int64_t>(index_.class_of(index));
    record.bytes_read = 0;
    return {};
  }
  const auto version = index_.version(index);
  const auto bytes = version ? options_.storage->read_version(record.name, record.storage, record.most_bytes, *version)
                             : options_.storage->read_all(record.name, record.storage, record.most_bytes);
  if (!bytes) return failed(index, bytes.error());
  return accept(index, std::span(&*bytes, 1), record);
}

Result<std::optional<storage::Piece>> FolderFormat::locate_image(std::uint64_t index, std::size_t /*field*/) const {
  return storage::Piece{.reader = nullptr, .path = file(index), .version = index_.version(index)};
}

Result<void> FolderFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  FEEDLINE_CHECK(index < size());
  pieces.push_back({.reader = nullptr, .path = file(index), .version = index_.version(index)});
  return {};
}

Result<void> FolderFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                                  memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  const auto bytes = pieces.front();
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  if (bytes.empty()) return failed(index, data_error("an empty file", "format").error());
  record.fields[0].bytes = bytes;
  record.fields[1].value = static_cast<std::int64_t>(index_.class_of(index));
  record.bytes_read = bytes.size();
  return {};
}

bool FolderFormat::find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                              std::string& /*room*/) const {
  if (fields_[field].kind != FieldKind::kInteger) return false;
  value = {};
  value.value = static_cast<std::int64_t>(index_.class_of(index));
  return true;
}

Result<SampleFiles> FolderFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  const std::string_view path = index_.path(index);
  const std::size_t dot = path.rfind('.');
  FEEDLINE_CHECK(dot != path.npos);  // only files with an image extension are listed
  const auto bytes = record.fields[0].bytes;
  SampleFiles sample{std::string(path.substr(0, dot)), record.fields[1].value, {}};
  sample.files.push_back({std::string(path.substr(dot + 1)), {bytes.begin(), bytes.end()}});
  return sample;
}

Result<SampleFileSizes> FolderFormat::file_sizes(std::uint64_t index) const {
  std::optional<std::uint64_t> bytes = index_.bytes(index);
  if (!bytes) {
    const auto stat = options_.storage->stat(file(index));
    if (!stat) return failed(index, stat.error());
    bytes = stat->bytes;
  }
  const std::string_view path = index_.path(index);
  const std::size_t dot = path.rfind('.');
  FEEDLINE_CHECK(dot != path.npos);
  SampleFileSizes sizes{std::string(path.substr(0, dot)), static_cast<std::int64_t>(index_.class_of(index)), {}};
  sizes.files.push_back({std::string(path.substr(dot + 1)), *bytes});
  return sizes;
}

Result<Inspection> FolderFormat::inspect(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_options(options));
  const std::string root = without_end_slashes(source);
  FEEDLINE_TRY(FolderListing listing, list_classes(*options.storage, root));
  Inspection inspection;
  inspection.format = "folder";
  inspection.samples = listing.samples();
  inspection.fields = {listing.file == SampleFile::kAudio   ? "audio"
                       : listing.file == SampleFile::kVideo ? "video"
                                                            : "image",
                       "label"};
  Findings findings = std::move(listing.findings);
  if (listing.classes.empty()) findings.add({"no_classes", Severity::kError, root, "", {}, what_is_missing(listing)});
  add_sizes(*options.storage, root, listing, inspection, findings);
  for (const auto& [extension, count] : listing.extensions) inspection.extensions.push_back({extension, count});
  for (std::size_t i = 0; i < listing.classes.size(); ++i)
    inspection.classes.push_back({listing.classes[i], listing.class_ends[i] - (i ? listing.class_ends[i - 1] : 0)});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
