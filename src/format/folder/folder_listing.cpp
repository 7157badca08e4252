// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_listing.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#include "decode/image_formats.h"
#include "format/folder/tree_listing.h"
#include "format/shards/each_shard.h"
#include "format/sources/image_names.h"
#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

std::string extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string() : to_lower(name.substr(dot));
}

// Returns the image extensions that are recognised in class folders, as text for messages.
std::string image_extensions() {
  std::string text;
  for (const decode::ImageFormat& format : decode::image_formats())
    for (const std::string_view extension : std::span(format.extensions).first(format.image_folder))
      text.append(text.empty() ? "." : ", .").append(extension);
  return text;
}

struct Folder {
  ListedFolder listed;
  std::vector<std::string> files;  // sorted
};

using IsSample = bool (*)(std::string_view name);

IsSample sample_names(SampleFile file) {
  switch (file) {
    case SampleFile::kImage:
      return &is_image_name;
    case SampleFile::kAudio:
      return &is_audio_name;
    case SampleFile::kVideo:
      return &is_video_name;
  }
  std::unreachable();
}

const char* files_of(SampleFile file) {
  return file == SampleFile::kImage ? "images" : file == SampleFile::kAudio ? "audio files" : "videos";
}

struct ClassListing {
  explicit ClassListing(SampleFile file) : is_sample_(sample_names(file)) {}

  std::string paths;
  std::vector<std::uint64_t> path_ends;
  std::vector<ListedObject> objects;
  std::vector<ListedFolder> folders;
  std::map<std::string, std::uint64_t> extensions;

  // Returns true if the file is a sample.
  bool add_file(std::string_view folder, std::string_view file) {
    std::string extension = extension_of(file);
    if (!extension.empty()) extension.erase(0, 1);
    // looked up once per run of equal extensions, because nearly all are the same
    if (!counted_ || extension != counted_->first) counted_ = &*extensions.try_emplace(std::move(extension), 0).first;
    ++counted_->second;
    if (!is_sample_(file)) return false;
    paths.append(folder).append("/").append(file);
    path_ends.push_back(paths.size());
    return true;
  }

 private:
  IsSample is_sample_;
  std::pair<const std::string, std::uint64_t>* counted_ = nullptr;
};

// Lists one class folder. ImageFolder orders the folders below a class by full path, not depth first: "c/a-b" precedes
// "c/a/b" because '-' sorts before '/'.
class ClassWalker {
 public:
  ClassWalker(const storage::Storage& storage, const std::string& root, SampleFile file)
      : storage_(storage), root_(root), listing_(file) {}

  Result<ClassListing> list(const std::string& name) {
    FEEDLINE_CHECK_OK(collect(name, 0));
    std::ranges::sort(folders_, {}, [](const Folder& folder) -> const std::string& { return folder.listed.path; });
    for (Folder& folder : folders_) {
      for (const std::string& file : folder.files) listing_.add_file(folder.listed.path, file);
      listing_.folders.push_back(std::move(folder.listed));
    }
    return std::move(listing_);
  }

 private:
  Result<void> collect(const std::string& path, int depth) {
    constexpr int kDeepest = 32;  // deeper than any dataset, but stops early at a link to a parent folder
    if (depth > kDeepest)
      return config_error("folders nested more than 32 deep below '" + root_ + "': does a link at '" + path +
                          "' lead to a parent folder?");
    // The modification time must be read before the contents, so that later changes are detected.
    FEEDLINE_TRY(const storage::ObjectStat stat, storage_.stat(root_ + "/" + path));
    FEEDLINE_TRY(auto entries, storage_.list(root_ + "/" + path));
    const std::size_t own = folders_.size();
    folders_.push_back({{path, stat}, {}});
    for (storage::Entry& entry : entries) {
      if (entry.is_directory) {
        FEEDLINE_CHECK_OK(collect(path + "/" + entry.name, depth + 1));
      } else {
        folders_[own].files.push_back(std::move(entry.name));
      }
    }
    return {};
  }

  const storage::Storage& storage_;
  const std::string& root_;
  std::vector<Folder> folders_;
  ClassListing listing_;
};

// Returns the folder of a sample relative to its class folder, or an empty string for the class folder itself.
std::string_view inner_folder(std::string_view path) {
  const std::size_t begin = path.find('/') + 1, end = path.find('/', begin);
  return end == std::string_view::npos ? std::string_view() : path.substr(begin, end - begin);
}

// Warns about class folders that contain only folders of images, because such a folder ("train", for example) is
// probably the parent of the class folders.
void note_merged_folders(const std::string& root, const std::string& name, std::uint64_t first,
                         FolderListing& listing) {
  if (first == listing.samples()) return;
  // sorted by folder, so images in the class folder itself would be first
  const auto from = inner_folder(listing.path(first)), to = inner_folder(listing.path(listing.samples() - 1));
  if (from.empty() || from == to) return;
  listing.findings.add({"merged_folders",
                        Severity::kWarning,
                        root + "/" + name,
                        name,
                        {},
                        "class folder '" + name + "' contains no images itself, and the images in its subfolders, '" +
                            std::string(from) + "' to '" + std::string(to) + "', become one class: open '" + root +
                            "/" + name + "' to use these subfolders as classes"});
}

void add_class(const std::string& root, std::string name, ClassListing found, FolderListing& listing) {
  const std::uint64_t before = listing.paths.size(), first = listing.samples();
  listing.paths.append(found.paths);
  for (const std::uint64_t end : found.path_ends) listing.path_ends.push_back(before + end);
  std::ranges::move(found.objects, std::back_inserter(listing.objects));
  std::ranges::move(found.folders, std::back_inserter(listing.folders));
  for (const auto& [extension, count] : found.extensions) listing.extensions[extension] += count;
  if (found.path_ends.empty()) {
    const bool has_json = found.extensions.contains("json");
    const std::string files = files_of(listing.file);
    const bool are_images = listing.file == SampleFile::kImage;
    listing.findings.add({"class_without_images",
                          Severity::kError,
                          root + "/" + name,
                          name,
                          {},
                          "class folder '" + name + "' contains no " + files +
                              (are_images ? " (" + image_extensions() + ")" : std::string()) +
                              ": remove it, or put its " + files + " in" +
                              (has_json ? "; if it holds the annotations of a COCO set, open their .json file" : "")});
  }
  note_merged_folders(root, name, first, listing);
  listing.classes.push_back(std::move(name));
  listing.class_ends.push_back(listing.samples());
}

// Reports files next to the class folders. If there are no class folders, a single error reports the files instead.
void add_strays(const std::string& root, const std::vector<storage::Entry>& entries, FolderListing& listing) {
  std::map<std::string, std::uint64_t> others;
  for (const storage::Entry& entry : entries) {
    if (entry.is_directory) continue;
    const std::string& name = entry.name;
    const std::string extension = extension_of(name);
    const bool tar = extension == ".tar" || extension == ".tgz";
    if (!name.starts_with('.')) ++listing.stray_extensions[name.substr(std::min(name.rfind('.'), name.size()))];
    if (tar) listing.stray_tars.push_back(name);
    if (listing.classes.empty()) continue;
    if (!tar && !is_image_name(name))
      ++others[extension];
    else
      listing.findings.add({"stray_file",
                            Severity::kWarning,
                            root + "/" + name,
                            name,
                            {},
                            "'" + name + "' is next to the class folders and is not read"});
  }
  for (const auto& [extension, count] : others)
    listing.findings.add({"other_files",
                          Severity::kNote,
                          root,
                          "",
                          {},
                          std::string("files ") +
                              (extension.empty() ? "without an extension" : "ending in " + extension) +
                              " next to the class folders are not read, " + std::to_string(count) + " in all"});
}

void add_unknown_extensions(const std::string& root, FolderListing& listing) {
  for (const auto& [extension, count] : listing.extensions)
    if (!sample_names(listing.file)("." + extension))
      listing.findings.add(
          {"unknown_extension",
           Severity::kWarning,
           root,
           "",
           {},
           std::string("files ") + (extension.empty() ? "without an extension" : "ending in ." + extension) +
               " are not read, " + std::to_string(count) + " in all: in class folders, only " +
               (listing.file == SampleFile::kImage ? "the extensions of torchvision's ImageFolder are read"
                                                   : std::string(files_of(listing.file)) + " are read")});
  listing.paths.shrink_to_fit();
  listing.path_ends.shrink_to_fit();
}

Result<FolderListing> list_folders(const storage::Storage& storage, const std::string& root, SampleFile file) {
  FolderListing listing{.file = file};
  FEEDLINE_TRY(const storage::ObjectStat stat, storage.stat(root));
  listing.folders.push_back({"", stat});
  FEEDLINE_TRY(auto entries, storage.list(root));
  std::vector<std::string> names;
  for (storage::Entry& entry : entries)
    if (entry.is_directory) names.push_back(std::move(entry.name));
  FEEDLINE_TRY(auto classes, each_shard<ClassListing>(names.size(), [&](std::size_t i) {
                 return ClassWalker(storage, root, file).list(names[i]);
               }));
  for (std::size_t i = 0; i < names.size(); ++i) add_class(root, std::move(names[i]), std::move(classes[i]), listing);
  add_strays(root, entries, listing);
  add_unknown_extensions(root, listing);
  return listing;
}

// Splits "cat/inner/1.jpg" into "cat", "cat/inner" and "1.jpg".
struct PathParts {
  explicit PathParts(std::string_view path) {
    const std::size_t first = path.find('/'), last = path.rfind('/');
    name = path.substr(last + 1);  // npos + 1 is 0, so the name is the whole path
    if (first == path.npos) return;
    top = path.substr(0, first);
    folder = path.substr(0, last);
  }
  std::string_view top, folder, name;
  auto order() const { return std::tie(top, folder, name); }
};

// Sorts by class, then by folder in the same order as ClassWalker.
void sort_as_image_folder(std::vector<storage::StoredBelow>& objects) {
  const auto is_before = [](const storage::StoredBelow& a, const storage::StoredBelow& b) {
    return PathParts(a.path).order() < PathParts(b.path).order();
  };
  std::ranges::sort(objects, is_before);
}

Result<FolderListing> list_flat(const storage::Storage& storage, const std::string& root, SampleFile file) {
  FolderListing listing{.file = file};
  listing.folders.push_back(listed_now());
  FEEDLINE_TRY(storage::Tree tree, list_tree(storage, root));
  std::map<std::string, ClassListing, std::less<>> classes;
  for (const std::string& mark : tree.marks)
    if (const std::string top = mark.substr(0, mark.find('/')); !top.empty()) classes.try_emplace(top, file);
  sort_as_image_folder(tree.objects);
  std::vector<storage::Entry> strays;
  for (const storage::StoredBelow& object : tree.objects) {
    const PathParts parts(object.path);
    if (parts.folder == parts.top && std::ranges::count(kMetadataNames, parts.name) > 0 &&
        std::distance(classes.begin(), classes.lower_bound(parts.top)) < kFirstClasses)
      listing.metadata = object.path;
    if (object.path.find('/') == object.path.npos) {
      strays.push_back({object.path, false});
    } else if (parts.top.empty()) {
      // Empty folder names are rejected, because a local copy of the dataset could not have the same samples.
      return config_error("'" + root + "/" + object.path +
                          "' has two slashes after the folder, so its class has no name: rename or remove it");
    } else {
      auto found = classes.find(parts.top);
      if (found == classes.end()) found = classes.emplace(parts.top, ClassListing(file)).first;
      if (found->second.add_file(parts.folder, parts.name)) found->second.objects.push_back({object.bytes, object.tag});
    }
  }
  for (auto& [name, found] : classes) add_class(root, name, std::move(found), listing);
  add_strays(root, strays, listing);
  add_unknown_extensions(root, listing);
  return listing;
}

}  // namespace

std::string_view FolderListing::path(std::uint64_t sample) const {
  const std::uint64_t begin = sample == 0 ? 0 : path_ends[sample - 1];
  return std::string_view(paths).substr(begin, path_ends[sample] - begin);
}

Result<FolderListing> list_folder(const storage::Storage& storage, const std::string& root, SampleFile file) {
  return storage.has_flat_names() ? list_flat(storage, root, file) : list_folders(storage, root, file);
}

}  // namespace feedline::format
