// SPDX-License-Identifier: Apache-2.0

// A stand-in for nvJPEG beside that of the driver, in the same library: every call that the engine makes, with
// libjpeg-turbo behind it. So the pixels are those that the engine's own decoder gives, and batches can be compared.
// Compiled at the end of fake_cuda.cpp, as a part of it. What its rules forbid is counted as the driver's is:
//
//   buffers   page-locked memory that is written, or given back, while a transfer still reads it
//   states    a transfer while the image before is still decoded; a state that goes while one is
//   handles   one that is none, or of another kind; memory for pixels that is not there

#ifndef FEEDLINE_TESTS_FAKE_CUDA_FAKE_NVJPEG_INL_H_
#define FEEDLINE_TESTS_FAKE_CUDA_FAKE_NVJPEG_INL_H_

#include <csetjmp>

#include <jpeglib.h>

namespace {

constexpr int kJpegInvalid = 2, kJpegBad = 3, kJpegFailed = 6;

struct Pixels {
  std::vector<unsigned char> bytes;
  unsigned width = 0, height = 0;
};

// All that a handle can be.
struct JpegThing {
  enum Kind { kHandle, kEngine, kState, kPinned, kMemory, kFile, kOptions } kind = kHandle;
  int device = 0;
  JpegThing* pinned = nullptr;          // of a state
  JpegThing* memory = nullptr;          // likewise
  Pixels pixels;                        // of a buffer: what is on its way there
  int pending = 0;                      // pieces of work that are still to use it
  const unsigned char* data = nullptr;  // of a file
  std::size_t bytes = 0;
  unsigned width = 0, height = 0;
  int components = 0;
};

auto& things() {
  static auto& made = *new std::map<void*, std::unique_ptr<JpegThing>>;
  return made;
}

long jpeg_things() { return static_cast<long>(things().size()); }
void forget_jpegs() { things().clear(); }

JpegThing* thing_of(void* handle, JpegThing::Kind kind, const char* call) {
  const auto found = things().find(handle);
  if (found != things().end() && found->second->kind == kind) return found->second.get();
  violation(std::string(call) + " of a handle that is none, or of another kind");
  return nullptr;
}

int make_thing(JpegThing::Kind kind, void** handle) {
  auto made = std::make_unique<JpegThing>();
  made->kind = kind;
  made->device = stack.back();
  *handle = made.get();
  things()[*handle] = std::move(made);
  return kSuccess;
}

int end_thing(void* handle, JpegThing::Kind kind, const char* call) {
  JpegThing* const thing = thing_of(handle, kind, call);
  if (thing == nullptr) return kJpegInvalid;
  if (thing->pending > 0) violation(std::string(call) + " while the GPU still uses it");
  things().erase(handle);
  return kSuccess;
}

#define ENTER_JPEG()                                        \
  const std::lock_guard lock_(guard());                     \
  if (const int status_ = enter(__func__)) return status_;  \
  if (in_context(__func__) != kSuccess) return kJpegFailed; \
  unsafe(__func__)

struct Trap {
  jpeg_error_mgr manager;  // first: libjpeg knows no more of it
  std::jmp_buf there;
};

[[noreturn]] void jump(j_common_ptr info) { std::longjmp(reinterpret_cast<Trap*>(info->err)->there, 1); }
void count_warning(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;
}

// false: it is damaged. pixels: nullptr: its header alone.
bool read_jpeg(JpegThing& file, Pixels* pixels) {
  jpeg_decompress_struct info;
  Trap trap;
  info.err = jpeg_std_error(&trap.manager);
  trap.manager.error_exit = &jump;
  trap.manager.emit_message = &count_warning;
  jpeg_create_decompress(&info);
  if (setjmp(trap.there) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_mem_src(&info, file.data, file.bytes);
  jpeg_read_header(&info, TRUE);
  file.width = info.image_width;
  file.height = info.image_height;
  file.components = info.num_components;
  if (pixels != nullptr) {
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    pixels->width = file.width;
    pixels->height = file.height;
    pixels->bytes.resize(std::size_t{3} * file.width * file.height);
    while (info.output_scanline < info.output_height) {
      unsigned char* row = pixels->bytes.data() + std::size_t{3} * file.width * info.output_scanline;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  }
  const bool is_sound = trap.manager.num_warnings == 0;
  jpeg_destroy_decompress(&info);
  return is_sound;
}

}  // namespace

std::size_t fake_nvjpeg_encode(int width, int height, int components, int value, void* to, std::size_t room) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &bytes, &length);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = components;
  info.in_color_space = components == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);  // so that one colour comes back as it was
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> line(static_cast<std::size_t>(width * components), static_cast<unsigned char>(value));
  unsigned char* row = line.data();
  while (info.next_scanline < info.image_height) jpeg_write_scanlines(&info, &row, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::size_t copied = length <= room ? length : 0;
  std::memcpy(to, bytes, copied);
  std::free(bytes);
  return copied;
}

extern "C" {

int nvjpegGetProperty(int part, int* value) {
  const std::lock_guard lock(guard());
  if (const int status = enter(__func__)) return status;
  *value = part == 0 ? 12 : part == 1 ? 4 : 0;
  return kSuccess;
}

int nvjpegGetCudartProperty(int part, int* value) {
  const std::lock_guard lock(guard());
  if (const int status = enter(__func__)) return status;
  *value = part == 0 ? 12 : 0;
  return kSuccess;
}

// As one of before 12.2: interpolated colours are a flag that it does not know.
int nvjpegCreateEx(int backend, void*, void*, unsigned flags, void** handle) {
  ENTER_JPEG();
  if (backend != 1 || (flags & ~4u) != 0) return kJpegInvalid;
  return make_thing(JpegThing::kHandle, handle);
}
int nvjpegDestroy(void* handle) {
  ENTER_JPEG();
  return end_thing(handle, JpegThing::kHandle, __func__);
}
int nvjpegDecoderCreate(void* handle, int backend, void** engine) {
  ENTER_JPEG();
  if (thing_of(handle, JpegThing::kHandle, __func__) == nullptr || backend != 1) return kJpegInvalid;
  return make_thing(JpegThing::kEngine, engine);
}
int nvjpegDecoderDestroy(void* engine) {
  ENTER_JPEG();
  return end_thing(engine, JpegThing::kEngine, __func__);
}
int nvjpegDecoderStateCreate(void* handle, void* engine, void** state) {
  ENTER_JPEG();
  if (thing_of(handle, JpegThing::kHandle, __func__) == nullptr ||
      thing_of(engine, JpegThing::kEngine, __func__) == nullptr)
    return kJpegInvalid;
  return make_thing(JpegThing::kState, state);
}
int nvjpegJpegStateDestroy(void* state) {
  ENTER_JPEG();
  return end_thing(state, JpegThing::kState, __func__);
}

#define FAKE_NVJPEG_MADE(create, destroy, kind)                                         \
  int create(void* handle, void** made) {                                               \
    ENTER_JPEG();                                                                       \
    if (thing_of(handle, JpegThing::kHandle, __func__) == nullptr) return kJpegInvalid; \
    return make_thing(JpegThing::kind, made);                                           \
  }                                                                                     \
  int destroy(void* made) {                                                             \
    ENTER_JPEG();                                                                       \
    return end_thing(made, JpegThing::kind, __func__);                                  \
  }
FAKE_NVJPEG_MADE(nvjpegJpegStreamCreate, nvjpegJpegStreamDestroy, kFile)
FAKE_NVJPEG_MADE(nvjpegDecodeParamsCreate, nvjpegDecodeParamsDestroy, kOptions)
#undef FAKE_NVJPEG_MADE

#define FAKE_NVJPEG_BUFFER(create, destroy, attach, kind, member)                       \
  int create(void* handle, void*, void** made) {                                        \
    ENTER_JPEG();                                                                       \
    if (thing_of(handle, JpegThing::kHandle, __func__) == nullptr) return kJpegInvalid; \
    return make_thing(JpegThing::kind, made);                                           \
  }                                                                                     \
  int destroy(void* made) {                                                             \
    ENTER_JPEG();                                                                       \
    return end_thing(made, JpegThing::kind, __func__);                                  \
  }                                                                                     \
  int attach(void* state, void* buffer) {                                               \
    ENTER_JPEG();                                                                       \
    JpegThing* const to = thing_of(state, JpegThing::kState, __func__);                 \
    JpegThing* const one = thing_of(buffer, JpegThing::kind, __func__);                 \
    if (to == nullptr || one == nullptr) return kJpegInvalid;                           \
    to->member = one;                                                                   \
    return kSuccess;                                                                    \
  }
FAKE_NVJPEG_BUFFER(nvjpegBufferPinnedCreate, nvjpegBufferPinnedDestroy, nvjpegStateAttachPinnedBuffer, kPinned, pinned)
FAKE_NVJPEG_BUFFER(nvjpegBufferDeviceCreate, nvjpegBufferDeviceDestroy, nvjpegStateAttachDeviceBuffer, kMemory, memory)
#undef FAKE_NVJPEG_BUFFER

int nvjpegDecodeParamsSetOutputFormat(void* options, int format) {
  ENTER_JPEG();
  if (thing_of(options, JpegThing::kOptions, __func__) == nullptr || format != 5) return kJpegInvalid;
  return kSuccess;
}

int nvjpegJpegStreamParse(void* handle, const unsigned char* data, std::size_t bytes, int, int, void* stream) {
  ENTER_JPEG();
  JpegThing* const file = thing_of(stream, JpegThing::kFile, __func__);
  if (thing_of(handle, JpegThing::kHandle, __func__) == nullptr || file == nullptr) return kJpegInvalid;
  file->data = data;
  file->bytes = bytes;
  return read_jpeg(*file, nullptr) ? kSuccess : kJpegBad;
}

int nvjpegJpegStreamGetFrameDimensions(void* stream, unsigned* width, unsigned* height) {
  ENTER_JPEG();
  const JpegThing* const file = thing_of(stream, JpegThing::kFile, __func__);
  if (file == nullptr) return kJpegInvalid;
  *width = file->width;
  *height = file->height;
  return kSuccess;
}

int nvjpegDecoderJpegSupported(void* engine, void* stream, void* options, int* refused) {
  ENTER_JPEG();
  const JpegThing* const file = thing_of(stream, JpegThing::kFile, __func__);
  if (file == nullptr || thing_of(engine, JpegThing::kEngine, __func__) == nullptr ||
      thing_of(options, JpegThing::kOptions, __func__) == nullptr)
    return kJpegInvalid;
  *refused = file->components == 3 ? 0 : 1;
  return kSuccess;
}

int nvjpegDecodeJpegHost(void*, void*, void* state_handle, void*, void* stream) {
  ENTER_JPEG();
  const JpegThing* const state = thing_of(state_handle, JpegThing::kState, __func__);
  JpegThing* const file = thing_of(stream, JpegThing::kFile, __func__);
  if (state == nullptr || file == nullptr || state->pinned == nullptr) return kJpegInvalid;
  if (state->pinned->pending > 0) violation("page-locked memory of an image was written that is still to cross");
  return read_jpeg(*file, &state->pinned->pixels) ? kSuccess : kJpegBad;
}

int nvjpegDecodeJpegTransferToDevice(void*, void*, void* state_handle, void* file, void* handle) {
  ENTER_JPEG();
  JpegThing* const state = thing_of(state_handle, JpegThing::kState, __func__);
  Stream* const stream = stream_of(handle);
  if (state == nullptr || stream == nullptr || thing_of(file, JpegThing::kFile, __func__) == nullptr ||
      state->pinned == nullptr || state->memory == nullptr)
    return kJpegInvalid;
  if (state->pending > 0) violation("an image was given to a state whose image before is still to be decoded");
  JpegThing *const from = state->pinned, *const to = state->memory;
  ++from->pending, ++to->pending, ++state->pending;
  give(*stream, Work{.kind = Work::kJpeg, .act = [=] {
                       to->pixels = from->pixels;
                       --from->pending, --to->pending, --state->pending;
                     }});
  return kSuccess;
}

int nvjpegDecodeJpegDevice(void*, void*, void* state_handle, void* image, void* handle) {
  ENTER_JPEG();
  struct {
    unsigned char* channel[4];
    std::size_t pitch[4];
  } out;
  std::memcpy(&out, image, sizeof out);
  JpegThing* const state = thing_of(state_handle, JpegThing::kState, __func__);
  Stream* const stream = stream_of(handle);
  if (state == nullptr || stream == nullptr || state->pinned == nullptr) return kJpegInvalid;
  const Pixels& size = state->pinned->pixels;
  const auto to = reinterpret_cast<std::uint64_t>(out.channel[0]);
  const std::size_t pitch = out.pitch[0], row = std::size_t{3} * size.width;
  if (pitch < row || memory_at(to, pitch * size.height) == nullptr) {
    violation("an image was to be decoded to memory that is not there");
    return kJpegInvalid;
  }
  JpegThing* const from = state->memory;
  ++from->pending, ++state->pending;
  give(*stream, Work{.kind = Work::kJpeg, .to = to, .bytes = pitch * size.height, .act = [=] {
                       const Pixels& pixels = from->pixels;
                       char* const at = seen_at(to, pitch * pixels.height);
                       if (at == nullptr) violation("an image was decoded to memory of the GPU that was freed");
                       for (unsigned y = 0; at != nullptr && y < pixels.height; ++y)
                         std::memcpy(at + y * pitch, pixels.bytes.data() + y * row, row);
                       --from->pending, --state->pending;
                     }});
  return kSuccess;
}
}

#endif  // include guard
