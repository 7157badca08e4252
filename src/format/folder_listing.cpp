// SPDX-License-Identifier: Apache-2.0
#include "format/folder_listing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/sample_name.h"

namespace feedline::format {
namespace {

// torchvision.datasets.folder.IMG_EXTENSIONS, those that decode reads first.
constexpr std::array<std::string_view, 9> kImageFolderExtensions{".jpg", ".jpeg", ".png", ".webp", ".ppm",
                                                                 ".bmp", ".pgm",  ".tif", ".tiff"};
constexpr std::size_t kDecodable = 4;

std::string extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string() : to_lower(name.substr(dot));
}

bool is_among(std::string_view name, std::size_t count) {
  const auto end = kImageFolderExtensions.begin() + static_cast<std::ptrdiff_t>(count);
  return std::find(kImageFolderExtensions.begin(), end, extension_of(name)) != end;
}

struct Folder {
  std::string path;                // relative to the root
  std::vector<std::string> files;  // sorted
};

class Walker {
 public:
  Walker(const storage::Storage& storage, const std::string& root, FolderListing& listing)
      : storage_(storage), root_(root), listing_(listing) {}

  // ImageFolder takes the folders below a class in the order of their whole paths, not of a walk: "c/a-b" comes
  // before "c/a/b", because '-' sorts before '/'.
  Result<void> add_class(const std::string& name) {
    std::vector<Folder> folders;
    FEEDLINE_CHECK_OK(collect(name, 0, folders));
    std::ranges::sort(folders, {}, &Folder::path);
    const std::uint64_t before = listing_.samples();
    for (const Folder& folder : folders)
      for (const std::string& file : folder.files) add_file(folder.path, file);
    listing_.classes.push_back(name);
    listing_.class_ends.push_back(listing_.samples());
    if (listing_.samples() == before)
      listing_.findings.add(
          {"class_without_images",
           Severity::kError,
           root_ + "/" + name,
           name,
           {},
           "class folder '" + name + "' holds no image (.jpg, .jpeg, .png, .webp): remove it, or put its images in"});
    return {};
  }

 private:
  Result<void> collect(const std::string& path, int depth, std::vector<Folder>& folders) {
    constexpr int kDeepest = 32;  // deeper than data sets are, less deep than what a link to a parent makes
    if (depth > kDeepest)
      return config_error("folders nested more than 32 deep below '" + root_ + "': does a link at '" + path +
                          "' lead to a parent folder?");
    FEEDLINE_TRY(auto entries, storage_.list(root_ + "/" + path));
    const std::size_t own = folders.size();
    folders.push_back({path, {}});
    for (storage::Entry& entry : entries) {
      if (entry.is_directory) {
        FEEDLINE_CHECK_OK(collect(path + "/" + entry.name, depth + 1, folders));
      } else {
        folders[own].files.push_back(std::move(entry.name));
      }
    }
    return {};
  }

  void add_file(const std::string& folder, const std::string& file) {
    std::string extension = extension_of(file);
    if (!extension.empty()) extension.erase(0, 1);
    // looked up per run of equal extensions, not per file: nearly all are the same
    if (!counted_ || extension != counted_->first)
      counted_ = &*listing_.extensions.try_emplace(std::move(extension), 0).first;
    ++counted_->second;
    if (!is_image_name(file)) return;
    listing_.paths.append(folder).append("/").append(file);
    listing_.path_ends.push_back(listing_.paths.size());
  }

  const storage::Storage& storage_;
  const std::string& root_;
  FolderListing& listing_;
  std::pair<const std::string, std::uint64_t>* counted_ = nullptr;
};

}  // namespace

bool is_image_name(std::string_view name) { return is_among(name, kImageFolderExtensions.size()); }
bool is_decodable_name(std::string_view name) { return is_among(name, kDecodable); }

std::string_view FolderListing::path(std::uint64_t sample) const {
  const std::uint64_t begin = sample == 0 ? 0 : path_ends[sample - 1];
  return std::string_view(paths).substr(begin, path_ends[sample] - begin);
}

std::uint64_t FolderListing::class_of(std::uint64_t sample) const {
  return static_cast<std::uint64_t>(std::ranges::upper_bound(class_ends, sample) - class_ends.begin());
}

Result<FolderListing> list_folder(const storage::Storage& storage, const std::string& root) {
  FolderListing listing;
  FEEDLINE_TRY(const auto entries, storage.list(root));
  Walker walker(storage, root, listing);
  for (const storage::Entry& entry : entries) {
    if (entry.is_directory) {
      FEEDLINE_CHECK_OK(walker.add_class(entry.name));
    } else if (is_image_name(entry.name)) {
      listing.stray_images.push_back(entry.name);
      listing.findings.add({"stray_file",
                            Severity::kWarning,
                            root + "/" + entry.name,
                            entry.name,
                            {},
                            "'" + entry.name + "' lies beside the class folders and is not read"});
    } else if (const std::string extension = extension_of(entry.name); extension == ".tar" || extension == ".tgz") {
      listing.stray_tars.push_back(entry.name);
    }
  }
  for (const auto& [extension, count] : listing.extensions)
    if (!is_image_name("." + extension))
      listing.findings.add({"unknown_extension",
                            Severity::kWarning,
                            root,
                            "",
                            {},
                            std::to_string(count) + " files " +
                                (extension.empty() ? "without an extension" : "ending in ." + extension) +
                                " are not read: not the name of an image"});
  listing.paths.shrink_to_fit();
  listing.path_ends.shrink_to_fit();
  return listing;
}

}  // namespace feedline::format
