// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset and the operations on its images. A Dataset is immutable and cheap to copy: every operation returns a new
// one.

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
#include "feedline/packing.h"
#include "feedline/sample_files.h"
#include "feedline/sample_function.h"

namespace feedline {

struct EpisodeOptions;

namespace pipeline {
class Source;
}

// How to treat samples that lack a field.
enum class Missing : std::uint8_t {
  kError,  // reading such a sample is an error, handled according to on_error
  kSkip,   // such samples are omitted when the source is opened
  kNone,   // the field is missing from that sample: a list row marked as missing
};

inline constexpr std::chrono::hours kListingAge{1};

// The checksums to verify when whole objects are read or copied to OpenOptions::cache_directory.
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

// Options of the annotated image formats "coco", "voc" and "yolo". An empty string selects the format's default.
struct AnnotationOptions {
  std::string images;  // coco: the folder that file names are relative to
  std::string split;   // voc: a list in ImageSets; yolo: a key of the YAML file
  std::string crowd;   // coco: "skip" skips crowd annotations, "keep" treats them like all others
};

struct OpenOptions {
  // "folder", "tar", "tfrecord", "parquet" or another name from docs/formats.md. If empty, the format is detected.
  std::string format;
  // One spec per field. If empty, the fields are the image and the label. In tar files, a spec is an extension, or
  // several separated by ';' ("jpg;png", "seg.png", "cls"); the field is named after the first one. In TFRecord files,
  // a spec is a feature, or several separated by ';' ("image/encoded", "label=image/class/label", "caption;text"); the
  // field is named after the first one, or by a prefix "NAME=". In folders, a spec is the path of the field's files
  // relative to the source, in which {key} is the sample's name and may contain slashes ("images/{key}.jpg",
  // "masks/{key}.png"); the field is named after the folder before {key}, or by a prefix "NAME=". The extension
  // determines the kind: those of image formats (image_formats.h) are images, or masks (labels) if the field's name
  // begins with "mask" or "seg"; cls, cls2, index, inx and id are integers; npy is an array, json and jsn are JSON,
  // txt, text, caption and transcript are text, and all others are bytes. A suffix ":image", ":mask", ":value",
  // ":array", ":bytes", ":text" or ":json" overrides the kind. The suffixes ":boxes" and ":keypoints" declare an array,
  // or lists in JSON, that geometric image operations transform along with the image.
  std::vector<std::string> fields;
  std::string index_directory;  // folder for stored indexes; empty: next to the shard, or else the user's cache folder
  Missing missing = Missing::kError;
  std::string cache_directory;  // folder for copies of whole objects on this machine, see node_cache.h; empty: no cache
  CacheLimit cache_limit;
  // How long the stored listing of a remote folder is trusted, as remote folders have no modification time; a missing
  // or misplaced sample invalidates the listing earlier. If 0, the folder is listed every time. Remote shards with a
  // stored index are checked during the first epoch or, if this is 0, when they are opened.
  std::chrono::seconds listing_age{kListingAge};
  bool allow_commands = false;  // whether the source may be "pipe:" and a command whose standard output is a tar
  Verify verify = Verify::kNone;
  std::vector<ListedShard> listed_shards = {};
  // Sends a request again if it takes longer than 99 % of the previous requests; see docs/remote.md.
  bool hedge = false;
  // Records checkpoints of large JPEGs, from which later crops are decoded; see docs/patches.md.
  bool checkpoints = true;
  AnnotationOptions annotations = {};
  bool documents = false;  // for "megatron": a sample is a document instead of a sequence
};

// One stored or transformed sample, which owns its memory.
struct Sample {
  struct Field {
    std::string name;
    ArraySpec array;  // with this sample's extents
    std::vector<std::byte> data;
    BatchForm form = BatchForm::kDense;
    Content content = Content::kArray;
    bool absent = false;  // the sample does not have the field; the array is empty
    // For a large array, used instead of `data`: memory that is not cleared first, or the pages of a memory-mapped
    // file. These are private, so that writing to them does not change the file.
    std::shared_ptr<std::byte> pages = nullptr;
    std::byte* bytes() { return pages ? pages.get() : data.data(); }  // the bytes of the array
  };
  std::vector<Field> fields;
};

// The name and kind of a field, as shown to users.
struct FieldRole {
  std::string name;
  std::string kind;                         // "image", "mask", "boxes", "keypoints", "value", "array", "bytes", ...
  BoxFormat box_format = BoxFormat::kXyxy;  // boxes only
  bool clamps = true;                       // boxes only; see op::Boxes
};

// A column, member, feature or key in the source that no field reads.
struct UnopenedColumn {
  std::string name;    // in the source: "caption"
  std::string holds;   // its type: "text", "list of float32"; empty if not known
  std::string reason;  // "not a default field"
  std::string spec;    // the spec for OpenOptions::fields, such as "caption:text"; empty if the column cannot be opened
  friend bool operator==(const UnopenedColumn&, const UnopenedColumn&) = default;
};

// A field whose column has a unit, an extension type or a mode that Feedline does not apply to the values.
struct FieldRemark {
  std::string field;
  std::string unit;  // unit of a time, such as "us"; otherwise empty
  std::string text;  // "int64, timestamp[us, tz=UTC]"
  friend bool operator==(const FieldRemark&, const FieldRemark&) = default;
};

// The values of one field for all samples.
struct FieldValues {
  ArraySpec row;                // of each sample's numbers
  std::vector<std::byte> data;  // the numbers of all samples
  bool are_separate = false;    // each sample has its own shape, in `shapes`, but the dtype of `row`
  std::vector<Shape> shapes;
  bool is_text = false;  // `texts` has the values
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
  // For each of the first operations, the index of an earlier view whose random draws it reuses, so that several views
  // can share one random crop. The earlier view must have the same operation at the same position.
  std::vector<int> drawn_as = {};
};

class SampleReader;

// The sequences of a dataset, packed into rows. Made by Dataset::pack_sequences(). Immutable and cheap to copy.
class PackedDataset {
 public:
  std::uint64_t documents() const;
  // Returns a loader of batches with the fields of PackedFormat (src/format/packed). A batch has options.batch_size
  // rows. `uneven` and `drop_last` apply to the last global batch of an epoch. `labels` replaces PackOptions::labels.
  // kConfig: as for Dataset::loader, an option that has no meaning for packs is set, or a batch has 2^31 tokens or
  // more.
  Result<Loader> loader(const LoaderOptions& options, std::optional<PackLabels> labels = {}) const;

 private:
  friend class Dataset;
  struct Impl;
  explicit PackedDataset(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

struct MixOptions;
struct PatchOptions;

// A stored number or text, or std::monostate if the sample has no value.
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

  // Appends an operation. The operation's arguments are checked by check(), schema(), loader() and sample(), before
  // these read data.
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

  // Replaces an image by several views, each of which is a field of the batch. Operations before views() are drawn and
  // applied once for all views. Each View adds its own operations. Operations after views() are applied to each view
  // with separate draws, or only to the views in Operation::fields. The image is decoded once or once per view,
  // whichever is cheaper; the pixels are the same, except with Fidelity::kFast. Other fields remain: operations on all
  // images and masks also apply to them, with separate draws. `field` selects the image if a sample has several. Fails
  // with kConfig if the image does not exist, a view's name is empty, duplicated or the name of a different field,
  // there are no views or more than kMostViews, a count is below 1, a view contains decode, views() follows normalize
  // or to_dtype, a map() function consumes the field, or the dataset already has views. Later calls fail if cache()
  // follows views(), or if a field of several views has no fixed size.
  Result<Dataset> views(std::vector<View> views, const std::string& field = {}) const;
  static constexpr std::size_t kMostViews = 254;  // for each sample
  // torchvision's FiveCrop and TenCrop: FiveCrop replaces the image with crops of the four corners and the centre, as
  // one field (5, C, H, W) with the image's name. TenCrop adds the same crops of the flipped image: (10, C, H, W).
  // Fails with kConfig like views(), and with kData if an image is too small.
  Result<Dataset> five_crop(Size size, const std::string& field = {}) const;
  Result<Dataset> ten_crop(Size size, bool vertical_flip = false, const std::string& field = {}) const;
  // Returns the views() call as text, and the index in operations() of the first operation after views(); nullopt if
  // there are no views.
  std::optional<std::pair<std::string, std::size_t>> viewed() const;

  // When a sample is first read, caches the 8-bit pixels that the preceding operations return. Later epochs run only
  // the operations after cache(). The output and the random draws are the same as without a cache. `where` is "memory",
  // the path of a file, or "device". Memory is shared by all processes of this user on this machine that use the same
  // cache, and freed when the last of these processes ends. A file can be used by later runs and by open(); until it is
  // complete, it is named PATH.filling. "device" is the loader's GPU, which also runs the operations after the cache.
  // `budget` is in bytes; samples that exceed it are read and decoded in every epoch. With budget 0, the limit is half
  // of the memory available to this process; for a device, the limit is its free memory, which must be enough for all
  // samples; for a file, there is no limit. Fails with kConfig if a preceding operation is random or does not output
  // 8-bit pixels, samples are arrays, the dataset already has a cache, or an operation after "device" is not supported
  // on GPUs. An existing file at the path is checked by loader() and sample().
  Result<Dataset> cache(const std::string& where, std::uint64_t budget = 0) const;
  // Sets the layout of these fields in a batch. kDense requires arrays of one shape; kPadded requires arrays that
  // differ at most in the first extent; kList accepts anything. If `fields` is empty, the layout applies to all fields
  // that support it. By default, text, bytes and JSON are lists and all other fields are dense. The last call for a
  // field takes effect. Fails with kConfig if a field does not exist or does not support this layout, or if samples are
  // arrays.
  Result<Dataset> collate(BatchForm form, std::vector<std::string> fields = {}) const;
  // Calls a function on each sample, after the preceding operations, in the threads that fill batches. The function's
  // results replace the fields that it consumes. Images are passed as the operations return them, in any size, and all
  // other fields as in Sample. Every result must have the dtype and shape of the first valid sample's result (among the
  // first 16 samples), unless collate() allows others; a different result is an error in that sample. A dataset has at
  // most one function: calling map() again replaces it, and the new function must also consume the fields of the old
  // function. Fails with kConfig if a field does not exist or samples have different lengths. Later calls fail if they
  // add a cache or an operation on a field that the function consumes.
  Result<Dataset> map(std::shared_ptr<const SampleFunction> function) const;
  // Returns the samples at these indexes, in this order, with this dataset's operations. Random operations are seeded
  // by the new indexes. Fails with kConfig if there are no indexes, an index is out of range, or the dataset is a
  // mixture or has a cache.
  Result<Dataset> subset(std::vector<std::uint64_t> indices) const;
  // Splits all samples at random into parts of the given sizes. Each part is like a subset(), in this dataset's order.
  // The split is the same on every machine. With `classes`, the class of each sample, every class is split in the same
  // ratio. Fails with kConfig like subset(), or if a part is empty, the sizes do not add up to size(), or `classes`
  // does not have one class per sample.
  Result<std::vector<Dataset>> split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                     const std::vector<std::int64_t>& classes = {}) const;
  // Returns a dataset whose samples are patches of this dataset's volumes; an operation on patches must follow.
  // kConfig: the samples have no volumes, or already are patches. kData: for grids, a volume cannot be opened, has
  // other dimensions, or is smaller than a patch.
  Result<Dataset> patches(const PatchOptions& options) const;
  // Returns an integer field of every sample. Reads as little as the format allows: nothing if the field is in memory,
  // the index or the file names, otherwise this field, or whole samples if the format cannot read single fields. Fails
  // with kConfig if the field does not exist, and with kData or kStorage if a sample cannot be read.
  Result<std::vector<std::int64_t>> numbers(const std::string& field) const;
  // Returns the values of each field for all samples: numbers, text, and JSON as text. There is no value if the sample
  // lacks the field, or if the value is an array, an image or bytes.
  Result<std::vector<std::vector<StoredValue>>> values(const std::vector<std::string>& fields) const;
  // Returns an integer field like numbers(), a text field, or a field of arrays, which are separate if their shapes
  // differ. Fails with kConfig if the field does not exist or has another kind, a sample lacks it, or the dtypes
  // differ; otherwise like numbers().
  Result<FieldValues> field_values(const std::string& field) const;
  // Inspects the dataset's source; see feedline::inspect(). Fails with kConfig for arrays and mixtures.
  Result<Inspection> inspect() const;
  // Returns the location of the cache, and the index in operations() of the first operation after cache(); nullopt if
  // there is no cache.
  std::optional<std::pair<std::string, std::size_t>> cached() const;

  // Checks that the operations' arguments are in range and that consecutive operations are compatible. If not, fails
  // with kConfig and a message that names the operation. Does not require a fixed output size; schema() and loader()
  // do.
  Result<void> check() const;
  Result<Schema> schema() const;  // of one sample, without the batch extent
  // The stored fields, except those that a function consumes. In formats whose samples are plain arrays, every field
  // has the kind "array".
  std::vector<FieldRole> roles() const;
  std::string explain() const;  // the operations that run, with their order and fusion
  // The cumulative number of samples up to the end of each shard, or empty if the format has no shards.
  std::vector<std::uint64_t> shard_ends() const;
  // The same for the parts of shards that shuffle="shards" permutes: row groups of Parquet files, record batches of
  // Arrow files, otherwise the shards.
  std::vector<std::uint64_t> block_ends() const;
  std::uint64_t fingerprint() const;  // changes with the samples, their order, fields and weights

  // Returns sample `index` as a loader with this seed would return it in this epoch. Fails with kConfig if the index is
  // out of range.
  Result<Sample> sample(std::uint64_t index, std::uint64_t seed = 0, std::uint64_t epoch = 0) const;
  // Returns the parameters of this sample's random and size-dependent operations. Reads only the image's header.
  Result<std::vector<DrawnValue>> draw(std::uint64_t index, std::uint64_t seed = 0, std::uint64_t epoch = 0) const;
  // Returns the parameters for an image of size `image` without reading any data, for testing their distributions.
  Result<std::vector<DrawnValue>> draw(Size image, std::uint64_t sample, std::uint64_t seed, std::uint64_t epoch) const;
  // Returns the stored bytes of the image field, for callers with their own decoder.
  Result<std::vector<std::byte>> encoded(std::uint64_t index) const;
  std::string key(std::uint64_t index) const;  // relative path, or WebDataset key
  // Returns all stored files of a sample. Fails with kConfig if the source is not an image folder, tar files or
  // TFRecord files. Lists that hold bytes are not JSON, but begin with a byte that is invalid in UTF-8.
  Result<SampleFiles> files(std::uint64_t index) const;
  // Returns the sizes of a sample's files: from the index for tar files, or by querying the storage for a folder.
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const;
  // Returns "16 bits", "32 bits" or "floats" if a dataset or loader of this source has read an image that loses
  // precision when converted to 8 bits. Returns this text only once, and an empty string in all other cases.
  std::string take_image_depth() const;
  // Like sample(), for several samples.
  Result<SampleReader> reader(Layout layout = Layout::kNchw) const;

  // Measures how fast `threads` threads decode the required regions of the first `images` samples from memory. The
  // result is an upper bound for the speed of any loader for these samples.
  Result<DecodeLimit> measure_decode(std::uint64_t images, int threads, std::uint64_t seed = 0) const;

  // Creates and stores checkpoints for all JPEGs before training (OpenOptions::checkpoints). Returns the number of
  // images that have checkpoints, the size of the checkpoints in bytes, and the path of the file that contains them.
  // Fails with kConfig if the samples have no encoded images or checkpoints are disabled, and with kStorage if the
  // checkpoints cannot be stored.
  struct Checkpoints {
    std::uint64_t images = 0;
    std::uint64_t bytes = 0;
    std::string path;
  };
  Result<Checkpoints> make_checkpoints(int threads) const;

  // Fails with kConfig if an operation or option is invalid, a batch exceeds the memory budget, or the dataset is
  // empty.
  Result<Loader> loader(const LoaderOptions& options) const;
  // Returns a loader for external samplers: the caller passes the samples of each batch to Loader::give(), and receives
  // the batches in that order. With OnError::kSkip, bad samples are replaced. Fails with kConfig like loader().
  Result<Loader> given_loader(const LoaderOptions& options) const;

  // Packs the sequences of tokens of this dataset, with their loss mask and labels if it has these fields. kConfig: an
  // option is out of range, the dataset has operations, or no or several fields of integers with known lengths; a
  // record format's samples are read once to find their lengths. kData: a sample's lists differ in length.
  Result<PackedDataset> pack_sequences(const PackOptions& options) const;

  struct Impl;
  // Returns the source whose sequences can be packed. kConfig: this dataset has operations.
  Result<pipeline::Source> packable() const;
  explicit Dataset(std::shared_ptr<const Impl> impl);

 private:
  friend Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options);
  friend Result<Dataset> episodes(EpisodeOptions options);
  std::shared_ptr<const Impl> impl_;
};

// Decoded 8-bit pixels in memory, with contiguous rows and 1 or 3 interleaved channels.
struct GivenPixels {
  const std::uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
};

// Reads and transforms single samples; reuses its scratch memory. Not thread-safe.
class SampleReader {
 public:
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;
  ~SampleReader();

  const Schema& schema() const;  // of one sample
  // Returns the sample as a loader with this seed would return it in this epoch. Fails with kConfig if the index is out
  // of range.
  Result<Sample> read(GivenSample sample, std::uint64_t seed = 0, std::uint64_t epoch = 0);
  // Decodes and transforms an image file in memory as if it were stored in the dataset. Fails with kConfig if samples
  // have fields other than the image.
  Result<Sample> read(std::span<const std::byte> encoded, std::uint64_t draw, std::uint64_t seed = 0,
                      std::uint64_t epoch = 0);
  // Transforms a decoded image. Fails with kConfig if the image is empty or has neither 1 nor 3 channels.
  Result<Sample> read(const GivenPixels& pixels, std::uint64_t draw, std::uint64_t seed = 0, std::uint64_t epoch = 0);

 private:
  friend class Dataset;
  struct Impl;
  explicit SampleReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// An array in memory. Row i starts at data + i * stride; its elements are contiguous.
struct NamedArray {
  std::string name;
  const std::byte* data = nullptr;
  std::uint64_t rows = 0;
  std::ptrdiff_t stride = 0;  // bytes
  ArraySpec row;
  std::shared_ptr<void> owner;  // owns the memory
  // For ragged arrays only: sample i consists of the rows [offsets[i], offsets[i + 1]), which must be contiguous.
  std::vector<std::int64_t> offsets = {};
  Element pad = {};  // ragged arrays: the value that pads shorter samples in a batch
  // "array" returns rows unchanged. An "image" has 8-bit pixels and the shape (height, width), (height, width, 1 or 3)
  // or (3, height, width). A "mask" has 8-bit or 16-bit labels and the shape (height, width). "boxes" have the shape
  // (N, 4), "keypoints" (N, 2) or (N, K, 2). Geometric image operations also transform masks, boxes and keypoints.
  std::string kind = "array";
};

// Returns a dataset whose fields are arrays of equal length and whose samples are their rows. A ragged array "name"
// becomes a field of shape (kAnyLength, ...), followed by an int64 field "name_length" with each sample's first extent.
// Only the rows of a batch are copied. If any field has a kind other than "array", samples support operations like
// those of stored files, and "name_length" exists only in batches. Fails with kConfig if there is no array, arrays have
// different numbers of samples, a sample is empty (only for images and masks if a field has a kind other than "array"),
// a name is duplicated, offsets do not ascend from 0 to `rows`, or an array does not match its kind.
Result<Dataset> arrays(std::vector<NamedArray> arrays);

struct TokenFile {
  std::string path;
  std::uint64_t offset = 0;  // bytes before the first token, such as a header
  // With Documents::kWhole: the ends of the documents, in tokens, which do not descend; tokens after the last one are
  // not used. nullopt: documents end with the separator.
  std::optional<std::vector<std::uint64_t>> ends = {};
  std::string loss_mask = {};  // with Documents::kWhole: a file with a byte per token, 0: not trained; "": none
};

// The effect of a separator between documents.
enum class Documents : std::uint8_t {
  kPack,   // windows as without a separator, plus the document of each token
  kApart,  // no sample has tokens of two documents
  kWhole,  // each sample is a document with its separator
};

struct TokenOptions {
  std::uint64_t window = 0;       // tokens per sample; kApart: in the longest sample; kWhole: 0
  std::uint64_t stride = 0;       // tokens between the starts of consecutive windows; 0: window
  DType stored = DType::kUint16;  // uint8, int16, uint16, int32, uint32 or int64, little-endian
  DType output = DType::kInt64;   // int32 or int64
  std::uint64_t vocabulary = 0;   // if not 0, opening reads all files and rejects tokens that are not below the
                                  // vocabulary size
  std::optional<std::int64_t> separator = {};  // the token that ends a document; required by the following options
  Documents documents = Documents::kPack;
  std::uint64_t shortest = 2;  // kApart: documents with fewer tokens, including their separator, are omitted
  std::int64_t pad = 0;        // kApart: pads shorter samples in x; y is padded with kIgnoredTarget
  // Data read from the files is cached in this process if all files together have at most this size. The default,
  // nullopt, is 1/64 of the memory that this process may use, at most 256 MiB. 0 disables the cache.
  std::optional<std::uint64_t> memory_bytes = {};
};

// The value of "y" at positions without a target. Equals the default ignore_index of torch's cross_entropy.
constexpr std::int64_t kIgnoredTarget = -100;

// Returns windows of token files: field "x" has `window` tokens, and "y" has the token that follows each of them. No
// window crosses the end of a file; tokens left over at the end are not used. kPack with a separator adds a third
// field, "document" (int32), the index of each token's document within the window, starting at zero. "y" is
// kIgnoredTarget at a separator, since the next token belongs to another document. With kApart, a sample is a document
// including its final separator. Documents longer than the window plus one token are split into pieces that begin
// `stride` tokens apart. With kApart, "x" and "y" are ragged, and the field "length" (int64) is their length. To find
// the documents, opening reads all files once, and the index uses 12 bytes per sample. With kWhole, the fields are
// "tokens" (int64, ragged), "tokens_length" and, if the files have loss masks, "loss_mask" (bool), and the index uses 8
// bytes per sample. Fails with kConfig if an option
// is invalid, a file's size is not a multiple of the token size, all files are shorter than a window, or the files
// contain no separator; with kStorage if a file cannot be opened; and with kData if a token is outside the vocabulary.
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

// Mixes several datasets so that every part of the order contains samples of each dataset in proportion to its weight.
// An exhausted dataset starts over, with a new order if shuffled. Sample indexes are those of the concatenated
// datasets. A weight of 0 excludes a dataset. Fails with kConfig if there is no dataset, a dataset is empty or itself a
// mixture, the datasets have different fields or operations, or weights are invalid.
Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options = {});

// An image file, specified by its path or as bytes in memory.
struct GivenImage {
  std::string path;                       // the name used in errors; for a file that is not in memory, its path
  std::span<const std::byte> bytes = {};  // the content, see GivenFiles::keep(); if absent, it is read from `path`
};

// A dataset of image files that the caller adds while a loader runs. Copies share the files. All methods are
// thread-safe.
class GivenFiles {
 public:
  explicit GivenFiles(std::string name);  // the dataset's name in errors

  // Returns a dataset with one field, the image, whose samples are the files passed to add().
  Dataset dataset() const;
  // Adds files at the end of the dataset and returns the index of the first one.
  std::uint64_t add(std::vector<GivenImage> files);
  // Keeps the owner of in-memory files alive until the dataset and all its loaders are destroyed.
  void keep(std::shared_ptr<const void> owner);
  // Releases the files of the add() call that returned `first`. Reading these files afterwards fails.
  void forget(std::uint64_t first);
  void forget_all();

  struct Impl;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Opens a dataset of any supported format. `source` is a path or URL, such as a folder with one folder per class, a
// .tar or TFRecord file, or a file written by Dataset::cache; a brace list names several ("shards/{000..146}.tar").
Result<Dataset> open(const std::string& source, const OpenOptions& options = {});

// Lists everything in a source that a reader would drop, merge or reject. Also works on damaged sources that open()
// rejects.
Result<Inspection> inspect(const std::string& source, const OpenOptions& options = {});

// The column names that are recognised as labels.
std::span<const std::string_view> label_names();

}  // namespace feedline
