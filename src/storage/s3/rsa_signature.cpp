// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/rsa_signature.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <vector>

namespace feedline::storage {
namespace {

constexpr std::string_view kHowToGetIt =
    "; a service account of Google signs with OpenSSL's libcrypto, 1.1 or 3: install it (Debian, Ubuntu: apt-get "
    "install libssl3; Fedora, RHEL: dnf install openssl-libs; conda install openssl), or name the file in "
    "FEEDLINE_LIBCRYPTO";

// The functions used, as declared by OpenSSL 1.1 and 3, with opaque types.
struct CryptoLibrary {
  void* (*BIO_new_mem_buf)(const void* data, int bytes) = nullptr;
  int (*BIO_free)(void* bio) = nullptr;
  void* (*PEM_read_bio_PrivateKey)(void* bio, void** key, void* password, void* user) = nullptr;
  void (*EVP_PKEY_free)(void* key) = nullptr;
  void* (*EVP_MD_CTX_new)() = nullptr;
  void (*EVP_MD_CTX_free)(void* context) = nullptr;
  const void* (*EVP_sha256)() = nullptr;
  int (*EVP_DigestSignInit)(void* context, void** key_context, const void* type, void* engine, void* key) = nullptr;
  int (*EVP_DigestSign)(void* context, unsigned char* signature, std::size_t* bytes, const unsigned char* text,
                        std::size_t text_bytes) = nullptr;
};

template <typename Call>
bool find(void* library, const char* name, Call& call) {
  call = reinterpret_cast<Call>(::dlsym(library, name));
  return call != nullptr;
}

bool find_all(void* library, CryptoLibrary& crypto) {
  return find(library, "BIO_new_mem_buf", crypto.BIO_new_mem_buf) && find(library, "BIO_free", crypto.BIO_free) &&
         find(library, "PEM_read_bio_PrivateKey", crypto.PEM_read_bio_PrivateKey) &&
         find(library, "EVP_PKEY_free", crypto.EVP_PKEY_free) &&
         find(library, "EVP_MD_CTX_new", crypto.EVP_MD_CTX_new) &&
         find(library, "EVP_MD_CTX_free", crypto.EVP_MD_CTX_free) && find(library, "EVP_sha256", crypto.EVP_sha256) &&
         find(library, "EVP_DigestSignInit", crypto.EVP_DigestSignInit) &&
         find(library, "EVP_DigestSign", crypto.EVP_DigestSign);
}

// It stays loaded until the process ends.
Result<CryptoLibrary> open_crypto(const std::string& file) {
  const std::vector<std::string> files =
      file.empty() ? std::vector<std::string>{"libcrypto.so.3", "libcrypto.so.1.1"} : std::vector{file};
  std::string found;
  for (const std::string& name : files) {
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    found = name;
    CryptoLibrary crypto;
    if (find_all(library, crypto)) return crypto;
  }
  const std::string why = found.empty() ? "there is no " + files.front() : found + " has not all of its calls";
  return storage_error(why + std::string(kHowToGetIt), 0);
}

using Held = std::unique_ptr<void, void (*)(void*)>;

Result<std::string> signed_by(const CryptoLibrary& crypto, std::string_view key, std::string_view text) {
  const auto refused = [] { return storage_error("its private key is no RSA key in PEM", EACCES); };
  void* const bio = crypto.BIO_new_mem_buf(key.data(), static_cast<int>(key.size()));
  if (bio == nullptr) return refused();
  char no_password = '\0';  // otherwise it would prompt for one on the terminal
  const Held parsed(crypto.PEM_read_bio_PrivateKey(bio, nullptr, nullptr, &no_password), crypto.EVP_PKEY_free);
  crypto.BIO_free(bio);
  const Held context(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  if (!parsed || !context) return refused();
  if (crypto.EVP_DigestSignInit(context.get(), nullptr, crypto.EVP_sha256(), nullptr, parsed.get()) != 1)
    return refused();
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t length = 0;
  if (crypto.EVP_DigestSign(context.get(), nullptr, &length, bytes, text.size()) != 1) return refused();
  std::string signature(length, '\0');
  if (crypto.EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length, bytes,
                            text.size()) != 1)
    return refused();
  signature.resize(length);
  return signature;
}

}  // namespace

Result<std::string> rs256_by(const std::string& library, std::string_view key, std::string_view text) {
  FEEDLINE_TRY(const CryptoLibrary crypto, open_crypto(library));
  return signed_by(crypto, key, text);
}

Result<std::string> rs256(std::string_view key, std::string_view text) {
  static const Result<CryptoLibrary> library = [] {
    const char* const file = std::getenv("FEEDLINE_LIBCRYPTO");
    return open_crypto(file ? file : "");
  }();
  if (!library) return std::unexpected(library.error());
  return signed_by(*library, key, text);
}

}  // namespace feedline::storage
