// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset and the operations on its images. Immutable: every operation returns a new Dataset, cheap to copy.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/inspection.h"
#include "feedline/loader.h"
#include "feedline/node_cache.h"
#include "feedline/operation.h"
#include "feedline/sample_files.h"
#include "feedline/sample_function.h"

namespace feedline {

// How to treat samples that lack a field.
enum class Missing : std::uint8_t {
  kError,  // reading such a sample is an error, handled according to on_error
  kSkip,   // such samples are omitted when the source is opened
  kNone,   // the field is missing from that sample: a list row marked as missing
};

inline constexpr std::chrono::hours kListingAge{1};

// The checksums to verify when whole objects are read or copied to the cache of OpenOptions.
enum class Verify : std::uint8_t {
  kNone,
  kManifest,  // OpenOptions::listed_shards
  kHeaders,   // the checksums that the server reports, as S3 and Google Cloud Storage do
};

// A shard's entry in feedline-pack.json.
struct ListedShard {
  std::string name;  // as in StoredSource::names()
  std::uint64_t bytes = 0;
  std::string sha256;  // hexadecimal digits
};

// Options of annotated images ("coco", "voc", "yolo"). Empty: the format's default applies.
struct AnnotationOptions {
  std::string images;  // coco: the folder that file names are relative to
  std::string split;   // voc: a list in ImageSets; yolo: a key of the YAML file
  std::string crowd;   // coco: "skip" skips crowd annotations, "keep" treats them like all others
};

struct OpenOptions {
  // "folder", "tar", "tfrecord", "parquet" and so on (docs/formats.md); empty: detected from the source.
  std::string format;
  // One spec per field. Empty: image and label. tar: an extension, or alternatives separated by ';' ("jpg;png",
  // "seg.png", "cls"). The field is named after the first alternative. tfrecord: a feature, or alternatives
  // ("image/encoded", "label=image/class/label", "caption;text"). The field is named after the first alternative, or by
  // a prefix "NAME=". folder: the path of its files below the source, with {key} for the sample's name, which may
  // contain slashes ("images/{key}.jpg", "masks/{key}.png"). The field is named after the folder before {key}, or by a
  // prefix "NAME=". The extension determines the kind: those of image formats (image_formats.h) are images, or masks
  // (labels) if the field's name begins with "mask" or "seg"; cls, cls2, index, inx and id are integers; npy is an
  // array, json and jsn are JSON, txt, text, caption and transcript are text, and all others are bytes. A suffix
  // ":image", ":mask", ":value", ":array", ":bytes", ":text" or ":json" overrides the kind; ":boxes" and ":keypoints"
  // declare an array, or lists in JSON, that geometric image operations transform along with the image.
  std::vector<std::string> fields;
  std::string index_directory;  // folder for stored indexes; empty: next to the shard, or else the user's cache folder
  Missing missing = Missing::kError;
  std::string cache_directory;  // folder for copies of whole objects on this machine, see node_cache.h; empty: no cache
  CacheLimit cache_limit;
  // A remote folder has no modification time, so its stored listing is trusted for this long, unless a sample turns out
  // to be missing or out of order. 0: always list again. A remote shard with a stored index is not checked when it is
  // opened, but during the first epoch; 0: at once.
  std::chrono::seconds listing_age{kListingAge};
  bool allow_commands = false;  // whether the source may be "pipe:" and a command whose standard output is a tar
  Verify verify = Verify::kNone;
  std::vector<ListedShard> listed_shards = {};
  // Sends a second request if a request takes longer than 99 % of requests; see docs/remote.md.
  bool hedge = false;
  AnnotationOptions annotations = {};
};

// One stored or transformed sample, with the memory that contains it.
struct Sample {
  struct Field {
    std::string name;
    ArraySpec array;  // with this sample's extents
    std::vector<std::byte> data;
    BatchForm form = BatchForm::kDense;
    Content content = Content::kArray;
    bool absent = false;  // the sample does not have the field; the array is empty
    // Set instead of `data` for a large row of a mapped file: the array in private pages. Writing to private pages does
    // not change the file.
    std::shared_ptr<std::byte> pages = nullptr;
    std::byte* bytes() { return pages ? pages.get() : data.data(); }  // the bytes of the array
  };
  std::vector<Field> fields;
};

// The kind of a field of a sample, for users.
struct FieldRole {
  std::string name;
  std::string kind;                         // "image", "mask", "boxes", "keypoints", "value", "array", "bytes", ...
  BoxFormat box_format = BoxFormat::kXyxy;  // boxes only
  bool clamps = true;                       // boxes only; see op::Boxes
};

// A column, member, feature or key of the source that no field reads.
struct UnopenedColumn {
  std::string name;    // in the source: "caption"
  std::string holds;   // its type: "text", "list of float32"; empty if not known
  std::string reason;  // "not a default field"
  std::string spec;    // the spec for OpenOptions::fields, such as "caption:text"; empty if the column cannot be opened
  friend bool operator==(const UnopenedColumn&, const UnopenedColumn&) = default;
};

// A field whose column has a unit, an extension type or a mode that is not applied to its values.
struct FieldRemark {
  std::string field;
  std::string unit;  // unit of a time, such as "us"; otherwise empty
  std::string text;  // "int64, timestamp[us, tz=UTC]"
  friend bool operator==(const FieldRemark&, const FieldRemark&) = default;
};

// A field of all samples.
struct FieldValues {
  ArraySpec row;                // of each sample's numbers
  std::vector<std::byte> data;  // the rows of all samples
  bool is_text = false;         // `texts` has the values
  std::vector<std::string> texts;
};

struct DecodeLimit {
  std::uint64_t images = 0;
  std::uint64_t encoded_bytes = 0;
  double wall_s = 0;
  double cpu_s = 0;
  int threads = 0;
};

// A field that Dataset::views derives from an image.
struct View {
  std::string name = {};                   // empty: the image's field name, "_" and the index of the view
  std::vector<Operation> operations = {};  // applied to the output of the operations before views()
  std::optional<int> count = {};           // the number of views, each with its own random draws, as one field (count,
                                           // C, H, W)
  // For its first operations: the index of an earlier view with the same operation whose draws are reused, so that
  // several views share one random crop.
  std::vector<int> drawn_as = {};
};

class SampleReader;
struct MixOptions;

// A number or text as stored; nothing if a sample has none.
using StoredValue = std::variant<std::monostate, std::int64_t, double, std::string>;

class Dataset {
 public:
  std::uint64_t size() const;
  const std::string& source() const;
  std::string format() const;                       // in the notation of OpenOptions::format
  const std::vector<std::string>& classes() const;  // label -> name; empty if unknown
  std::vector<UnopenedColumn> unopened() const;     // in the source's order
  std::vector<FieldRemark> remarks() const;
  const std::vector<Operation>& operations() const;

  // Appends an operation. Arguments are checked by check(), schema(), loader() and sample(), before any read.
  Dataset with(Operation operation) const;
  Dataset decode(ColorMode mode = ColorMode::kRgb) const { return with(op::Decode{mode}); }
  Dataset resize(int size) const { return with(op::Resize{{size, 0}, {}, Interpolation::kBilinear}); }
  Dataset resize(Size size) const { return with(op::Resize{size, {}, Interpolation::kBilinear}); }
  Dataset center_crop(int size) const { return with(op::CenterCrop{{size, size}}); }
  Dataset random_crop(int size) const {
    return with(op::RandomCrop{{size, size}, {}, false, {}, PaddingMode::kConstant});
  }
  Dataset random_resized_crop(int size) const { return with(op::RandomResizedCrop{{size, size}}); }
  Dataset random_horizontal_flip(double p = 0.5) const { return with(op::RandomHorizontalFlip{p}); }
  Dataset random_vertical_flip(double p = 0.5) const { return with(op::RandomVerticalFlip{p}); }
  Dataset pad(int padding) const {
    return with(op::Pad{{padding, padding, padding, padding}, {}, PaddingMode::kConstant});
  }
  Dataset grayscale(int num_output_channels = 1) const { return with(op::Grayscale{num_output_channels}); }
  Dataset normalize(std::vector<float> mean, std::vector<float> std) const {
    return with(op::Normalize{std::move(mean), std::move(std)});
  }
  Dataset to_dtype(DType dtype, bool scale = false) const { return with(op::ToDtype{dtype, scale}); }

  // Several views of one image: each is a field of the batch and replaces the image. The operations so far are drawn
  // and applied once for all views; each View adds its own operations, and those after views() are applied to each view
  // with separate draws (Operation::fields names views). The image is decoded once, or once per view, whichever is
  // cheaper; the pixels are the same, except with Fidelity::kFast. Other fields are unchanged: operations on all images
  // and masks apply to them as well, with separate draws. field: the image, if a sample has several. A dataset can have
  // one views(). kConfig: the image does not exist; a name is empty, duplicated, or the name of a different field;
  // there is no view, or more than kMostViews; a count is below 1; a view contains decode; normalize or to_dtype
  // precedes views(); a map() function consumes the field. Later calls also fail: cache(), which must precede views();
  // a field of several views without a fixed size.
  Result<Dataset> views(std::vector<View> views, const std::string& field = {}) const;
  static constexpr std::size_t kMostViews = 254;  // for each sample
  // torchvision's FiveCrop and TenCrop: the four corners and the centre as one field (5, C, H, W) named like the image,
  // followed for TenCrop by the same five crops of the mirrored image. kConfig: the errors of views(). kData: an image
  // is too small.
  Result<Dataset> five_crop(Size size, const std::string& field = {}) const;
  Result<Dataset> ten_crop(Size size, bool vertical_flip = false, const std::string& field = {}) const;
  // The views() call and the index in operations() that it precedes; nullopt if there is none.
  std::optional<std::pair<std::string, std::size_t>> viewed() const;

  // Caches the 8-bit pixels after the operations so far when a sample is first read; later epochs run only the
  // operations after it. The output and the random draws are the same as without a cache. where: "memory" (one copy
  // shared by all processes of this user on this machine with the same cache, freed with the last of them), the path of
  // a file (PATH.filling until it is complete), which later runs and open() can use, or "device": the loader's GPU,
  // which then runs the operations after the cache. budget: bytes; samples beyond it are read and decoded in every
  // epoch. 0: half of the memory available to this process; for a file, no limit; for a device, which must hold all
  // samples, its free memory. kConfig: a preceding operation is random or does not output 8-bit pixels; samples are
  // arrays; there is a second cache; an operation after "device" is not supported on GPUs. loader() and sample() check
  // the file at the path.
  Result<Dataset> cache(const std::string& where, std::uint64_t budget = 0) const;
  // Sets the layout of these fields in a batch: kDense needs arrays of one shape, kPadded arrays that may differ in the
  // first extent, kList accepts anything. No fields: all fields that support it. By default text, bytes and JSON are
  // lists and all others are dense; the last call for a field wins. kConfig: a field does not exist or does not support
  // this layout, or samples are arrays.
  Result<Dataset> collate(BatchForm form, std::vector<std::string> fields = {}) const;
  // Calls a function on each sample, after the operations so far and in the threads that make batches, and replaces the
  // fields that it consumes with its results. It gets images as the operations return them, of any size, and all other
  // fields as in a single sample. Results must have the dtype and shape of the first valid sample's result (among the
  // first 16 samples), unless collate() allows otherwise; any other result is an error in that sample. A dataset has
  // one function: calling map() again replaces it, and the new function must also consume the fields of the old one.
  // kConfig: a field does not exist, or samples have different lengths. Later calls also fail: an operation on a field
  // that the function consumes, and cache().
  Result<Dataset> map(std::shared_ptr<const SampleFunction> function) const;
  // The samples at these indexes, in this order, with this dataset's operations; random operations are keyed by the new
  // index. kConfig: there is no index, an index is out of range, or the dataset is a mixture or has a cache.
  Result<Dataset> subset(std::vector<std::uint64_t> indices) const;
  // Splits all samples at random into parts of the given sizes, each like subset(), in this dataset's order. The split
  // is the same on every machine. classes: the class of each sample; each class is then split in the same ratio.
  // kConfig: the errors of subset(); a part is empty, the sizes do not add up to size(), or the number of classes is
  // wrong.
  Result<std::vector<Dataset>> split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                     const std::vector<std::int64_t>& classes = {}) const;
  // Returns an integer field of every sample. Class folders know their labels; other formats read each sample once.
  // kConfig: the field does not exist.
  Result<std::vector<std::int64_t>> numbers(const std::string& field) const;
  // Likewise, returns the values of each field for all samples: numbers, texts, and JSON as text. A sample has no value
  // if it lacks the field, or if its value is an array, an image or bytes.
  Result<std::vector<std::vector<StoredValue>>> values(const std::vector<std::string>& fields) const;
  // Returns an integer field like numbers(), a field of text, or a field of numbers that the dataset has in memory.
  // kConfig: the field does not exist, a sample lacks it, or its values are in files or have different shapes.
  Result<FieldValues> field_values(const std::string& field) const;
  // Inspects the source again, see feedline::inspect(). kConfig: arrays and mixtures.
  Result<Inspection> inspect() const;
  // The cache and the index in operations() that it precedes; nullopt if there is none.
  std::optional<std::pair<std::string, std::size_t>> cached() const;

  // Checks that the operations' arguments are in range and that consecutive operations are compatible. kConfig names
  // the operation. A chain without a fixed output size is accepted here; schema() and loader() reject it.
  Result<void> check() const;
  Result<Schema> schema() const;  // of one sample, without the batch extent
  // The stored fields, except those that a function consumes. All have the kind "array" in formats of plain rows.
  std::vector<FieldRole> roles() const;
  std::string explain() const;  // the operations that run, with their order and fusion
  // The cumulative number of samples up to the end of each shard, if the format has shards; else empty.
  std::vector<std::uint64_t> shard_ends() const;
  std::uint64_t fingerprint() const;  // changes with the samples, their order, fields and weights

  // Sample `index` transformed as in `epoch` of a loader with `seed`. kConfig: index out of range.
  Result<Sample> sample(std::uint64_t index, std::uint64_t seed = 0, std::uint64_t epoch = 0) const;
  // The sample's parameters for random and size-dependent operations; reads only the image's header.
  Result<std::vector<DrawnValue>> draw(std::uint64_t index, std::uint64_t seed = 0, std::uint64_t epoch = 0) const;
  // The parameters for an image of size `image`, without reading anything, for tests of the distributions.
  Result<std::vector<DrawnValue>> draw(Size image, std::uint64_t sample, std::uint64_t seed, std::uint64_t epoch) const;
  // Stored bytes of the image field, for callers with their own decoder.
  Result<std::vector<std::byte>> encoded(std::uint64_t index) const;
  std::string key(std::uint64_t index) const;  // relative path, or WebDataset key
  // All stored files of a sample. kConfig: the source is not an image folder, tars, or TFRecord files.
  Result<SampleFiles> files(std::uint64_t index) const;
  // The files' sizes, from the index of tars, or by querying the storage for each file of a folder.
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const;
  // Returns "16 bits", "32 bits" or "floats" once after any dataset or loader of this source read an image that loses
  // precision as 8 bits; else an empty string.
  std::string take_image_depth() const;
  // Like sample(), for several samples.
  Result<SampleReader> reader(Layout layout = Layout::kNchw) const;

  // Measures how fast `threads` threads decode only the needed regions of the first `images` samples, already in
  // memory. The result is the upper limit of any loader over these samples.
  Result<DecodeLimit> measure_decode(std::uint64_t images, int threads, std::uint64_t seed = 0) const;

  // kConfig: an operation or option is invalid, the memory budget is smaller than one batch, or the dataset is empty.
  Result<Loader> loader(const LoaderOptions& options) const;
  // Returns a loader without its own order: the caller passes the samples of each batch to Loader::give() and gets the
  // batches in that order. For external samplers. kSkip replaces a bad sample. kConfig: as loader().
  Result<Loader> given_loader(const LoaderOptions& options) const;

  struct Impl;
  explicit Dataset(std::shared_ptr<const Impl> impl);

 private:
  friend Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options);
  std::shared_ptr<const Impl> impl_;
};

// Decoded 8-bit pixels in memory, with contiguous rows and `channels` (1 or 3) interleaved.
struct GivenPixels {
  const std::uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
};

// Reads and transforms single samples, reusing scratch memory. Not thread-safe.
class SampleReader {
 public:
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;
  ~SampleReader();

  const Schema& schema() const;  // of one sample
  // The sample as the loader returns it for a GivenSample, with its seed and the epoch. kConfig: index out of range.
  Result<Sample> read(GivenSample sample, std::uint64_t seed = 0, std::uint64_t epoch = 0);
  // An image file in memory, treated as if it were stored in the dataset. kConfig: samples have fields other than the
  // image.
  Result<Sample> read(std::span<const std::byte> encoded, std::uint64_t draw, std::uint64_t seed = 0,
                      std::uint64_t epoch = 0);
  // Transforms a decoded image. kConfig: the image has no pixels, or neither 1 nor 3 channels.
  Result<Sample> read(const GivenPixels& pixels, std::uint64_t draw, std::uint64_t seed = 0, std::uint64_t epoch = 0);

 private:
  friend class Dataset;
  struct Impl;
  explicit SampleReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// An array in memory. `data`: row i starts at data + i * stride, and its elements are contiguous.
struct NamedArray {
  std::string name;
  const std::byte* data = nullptr;
  std::uint64_t rows = 0;
  std::ptrdiff_t stride = 0;  // bytes
  ArraySpec row;
  std::shared_ptr<void> owner;  // owns the memory
  // Not empty for a ragged array: sample i is the rows [offsets[i], offsets[i + 1]). Samples must be contiguous.
  std::vector<std::int64_t> offsets = {};
  Element pad = {};  // ragged arrays: the value that pads shorter samples in a batch
  // "array": rows as they are. "image": 8-bit pixels, (height, width), (height, width, 1 or 3) or (3, height, width);
  // "mask": labels of 8 or 16 bits, (height, width); "boxes": (N, 4); "keypoints": (N, 2) or (N, K, 2). Geometric image
  // operations transform the last three as well.
  std::string kind = "array";
};

// Samples are the rows of arrays of equal length; each array is a field. A ragged array "name" is a field of shape
// (kAnyLength, ...), followed by an int64 field "name_length" with each sample's first extent. Only the rows of a batch
// are copied. If any field is not a plain array, samples behave like those of stored files and support operations, and
// a ragged array's "name_length" is only in batches. kConfig: there is no array; arrays have different numbers of
// samples; a sample is empty (images and masks only, if any field is not a plain array); a name is duplicated; offsets
// do not ascend from 0 to `rows`; an array does not match its kind.
Result<Dataset> arrays(std::vector<NamedArray> arrays);

struct TokenFile {
  std::string path;
  std::uint64_t offset = 0;  // bytes before the first token, such as a header
};

// The effect of a separator between documents.
enum class Documents : std::uint8_t {
  kPack,   // windows as without a separator, plus the document of each token
  kApart,  // no sample has tokens of two documents
};

struct TokenOptions {
  std::uint64_t window = 0;       // tokens per sample, or in the longest sample with Documents::kApart
  std::uint64_t stride = 0;       // tokens between the starts of consecutive windows; 0: window
  DType stored = DType::kUint16;  // uint8, int16, uint16, int32, uint32 or int64, little-endian
  DType output = DType::kInt64;   // int32 or int64
  std::uint64_t vocabulary = 0;   // if not 0, opening reads all files and rejects tokens that are not below the
                                  // vocabulary size
  std::optional<std::int64_t> separator = {};  // the token that ends a document; required by the following options
  Documents documents = Documents::kPack;
  std::uint64_t shortest = 2;  // kApart: documents with fewer tokens, including their separator, are omitted
  std::int64_t pad = 0;        // kApart: pads shorter samples in x; y is padded with kIgnoredTarget
  // If all files together fit into this many bytes, data read from them is cached in this process. nullopt: 1/64 of
  // usable memory, at most 256 MiB; 0: never.
  std::optional<std::uint64_t> memory_bytes = {};
};

// The value of "y" at positions without a target; torch's cross_entropy skips it by default (ignore_index).
constexpr std::int64_t kIgnoredTarget = -100;

// Windows of token files: field "x" holds `window` tokens, "y" the same window shifted by one token. No window crosses
// the end of a file; the rest of a file is not used. kPack with a separator adds a third field, "document" (int32): the
// number of the token's document in the window, from
// 0. "y" is kIgnoredTarget at a separator, whose next token belongs to another document.
// With kApart a sample is a document including its final separator, or a piece of one: documents of more than window +
// 1 tokens are split into pieces that begin `stride` tokens apart. "x" and "y" are ragged; "length" (int64) is their
// length. Opening reads all files once; the index needs 12 bytes per sample. kConfig: an option is invalid, a file's
// size is not a multiple of the token size, no file holds a window, or the files contain no separator. kStorage: a file
// cannot be opened. kData: a token outside the vocabulary.
Result<Dataset> tokens(const std::vector<TokenFile>& files, const TokenOptions& options);

enum class MixUntil : std::uint8_t {
  kSamples,  // an epoch has MixOptions::samples
  kFirst,    // an epoch ends before any dataset repeats a sample
  kLast,     // an epoch ends when every sample of every dataset has appeared
};

struct MixOptions {
  std::vector<double> weights;  // shares of the datasets; empty: proportional to size, so that each sample appears once
  MixUntil until = MixUntil::kSamples;
  std::uint64_t samples = 0;  // 0: the total size of all datasets
};

// Mixes several datasets: each contributes its share of every stretch of the order; an exhausted dataset starts over,
// in a different order when shuffled. Indexes number the samples of the concatenated datasets. A weight of 0 excludes a
// dataset. kConfig: there is no dataset, or a dataset is empty or itself a mixture; fields or operations differ;
// weights are invalid.
Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options = {});

// An image file given by path or as bytes in memory.
struct GivenImage {
  std::string path;                       // the name used in errors; for a file that is not in memory, its path
  std::span<const std::byte> bytes = {};  // the content, see GivenFiles::keep(); if absent, it is read from `path`
};

// Image files that the caller adds while a loader runs, for datasets that the caller lists. Copies share the files;
// every method is thread-safe.
class GivenFiles {
 public:
  explicit GivenFiles(std::string name);  // the dataset's name in errors

  // A dataset with one field, the image. Its samples are the files passed to add().
  Dataset dataset() const;
  // The index of the first of `files` in the dataset; the others follow.
  std::uint64_t add(std::vector<GivenImage> files);
  // Owns the bytes of files in memory; released with the last reference from the dataset and its loaders.
  void keep(std::shared_ptr<const void> owner);
  // Releases the files of the add() that returned `first`; later reads of these files fail.
  void forget(std::uint64_t first);
  void forget_all();

  struct Impl;

 private:
  std::shared_ptr<const Impl> impl_;
};

// A folder of class folders, a pixel file (Dataset::cache), a .tar or .tar.gz, a TFRecord file, or a brace list of them
// ("shards/{000..146}.tar").
Result<Dataset> open(const std::string& source, const OpenOptions& options = {});

// Lists what a reader would drop, merge or reject in a source; also works on damaged sources, for which open() fails.
Result<Inspection> inspect(const std::string& source, const OpenOptions& options = {});

// Common names of label columns.
std::span<const std::string_view> label_names();

}  // namespace feedline
