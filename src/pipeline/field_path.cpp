// SPDX-License-Identifier: Apache-2.0
#include "pipeline/field_path.h"

namespace feedline::pipeline {

Result<void> FieldPath::keep(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                             format::PixelRecordBuilder& /*kept*/) const {
  return config_error("cache: it keeps images and integers, and '" + spec_.name + "' is neither");
}

}  // namespace feedline::pipeline
