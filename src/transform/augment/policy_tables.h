// SPDX-License-Identifier: Apache-2.0
#pragma once

// AutoAugment's learned policies (Cubuk et al., "AutoAugment: Learning Augmentation Strategies from Data", CVPR 2019),
// in the versions of torchvision and timm. Each sub-policy consists of two augmentations, each with a probability and a
// magnitude from 0 to 9 (timm: 10). Augmentations without a magnitude have 0, or the value in the original table.

#include "transform/augment/augmentation_level.h"

namespace feedline::transform {

struct PolicyStep {
  Augmentation augmentation;
  double probability;
  int magnitude;
};
struct SubPolicy {
  PolicyStep steps[2];
};

namespace policy_tables {
using enum Augmentation;

// torchvision
constexpr SubPolicy kImageNet[] = {
    {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}},  {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}}},
    {{{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}}, {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
    {{{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}}, {{{kEqualize, 0.4, 0}, {kRotate, 0.8, 8}}},
    {{{kSolarize, 0.6, 3}, {kEqualize, 0.6, 0}}}, {{{kPosterize, 0.8, 5}, {kEqualize, 1.0, 0}}},
    {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},   {{{kEqualize, 0.6, 0}, {kPosterize, 0.4, 6}}},
    {{{kRotate, 0.8, 8}, {kColor, 0.4, 0}}},      {{{kRotate, 0.4, 9}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.0, 0}, {kEqualize, 0.8, 0}}}, {{{kInvert, 0.6, 0}, {kEqualize, 1.0, 0}}},
    {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},    {{{kRotate, 0.8, 8}, {kColor, 1.0, 2}}},
    {{{kColor, 0.8, 8}, {kSolarize, 0.8, 7}}},    {{{kSharpness, 0.4, 7}, {kInvert, 0.6, 0}}},
    {{{kShearX, 0.6, 5}, {kEqualize, 1.0, 0}}},   {{{kColor, 0.4, 0}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}}, {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}}},
    {{{kInvert, 0.6, 0}, {kEqualize, 1.0, 0}}},   {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},
    {{{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}},
};
constexpr SubPolicy kCifar10[] = {
    {{{kInvert, 0.1, 0}, {kContrast, 0.2, 6}}},         {{{kRotate, 0.7, 2}, {kTranslateX, 0.3, 9}}},
    {{{kSharpness, 0.8, 1}, {kSharpness, 0.9, 3}}},     {{{kShearY, 0.5, 8}, {kTranslateY, 0.7, 9}}},
    {{{kAutoContrast, 0.5, 0}, {kEqualize, 0.9, 0}}},   {{{kShearY, 0.2, 7}, {kPosterize, 0.3, 7}}},
    {{{kColor, 0.4, 3}, {kBrightness, 0.6, 7}}},        {{{kSharpness, 0.3, 9}, {kBrightness, 0.7, 9}}},
    {{{kEqualize, 0.6, 0}, {kEqualize, 0.5, 0}}},       {{{kContrast, 0.6, 7}, {kSharpness, 0.6, 5}}},
    {{{kColor, 0.7, 7}, {kTranslateX, 0.5, 8}}},        {{{kEqualize, 0.3, 0}, {kAutoContrast, 0.4, 0}}},
    {{{kTranslateY, 0.4, 3}, {kSharpness, 0.2, 6}}},    {{{kBrightness, 0.9, 6}, {kColor, 0.2, 8}}},
    {{{kSolarize, 0.5, 2}, {kInvert, 0.0, 0}}},         {{{kEqualize, 0.2, 0}, {kAutoContrast, 0.6, 0}}},
    {{{kEqualize, 0.2, 0}, {kEqualize, 0.6, 0}}},       {{{kColor, 0.9, 9}, {kEqualize, 0.6, 0}}},
    {{{kAutoContrast, 0.8, 0}, {kSolarize, 0.2, 8}}},   {{{kBrightness, 0.1, 3}, {kColor, 0.7, 0}}},
    {{{kSolarize, 0.4, 5}, {kAutoContrast, 0.9, 0}}},   {{{kTranslateY, 0.9, 9}, {kTranslateY, 0.7, 9}}},
    {{{kAutoContrast, 0.9, 0}, {kSolarize, 0.8, 3}}},   {{{kEqualize, 0.8, 0}, {kInvert, 0.1, 0}}},
    {{{kTranslateY, 0.7, 9}, {kAutoContrast, 0.9, 0}}},
};
constexpr SubPolicy kSvhn[] = {
    {{{kShearX, 0.9, 4}, {kInvert, 0.2, 0}}},       {{{kShearY, 0.9, 8}, {kInvert, 0.7, 0}}},
    {{{kEqualize, 0.6, 0}, {kSolarize, 0.6, 6}}},   {{{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}}},     {{{kShearX, 0.9, 4}, {kAutoContrast, 0.8, 0}}},
    {{{kShearY, 0.9, 8}, {kInvert, 0.4, 0}}},       {{{kShearY, 0.9, 5}, {kSolarize, 0.2, 6}}},
    {{{kInvert, 0.9, 0}, {kAutoContrast, 0.8, 0}}}, {{{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}}},
    {{{kShearX, 0.9, 4}, {kSolarize, 0.3, 3}}},     {{{kShearY, 0.8, 8}, {kInvert, 0.7, 0}}},
    {{{kEqualize, 0.9, 0}, {kTranslateY, 0.6, 6}}}, {{{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}}},
    {{{kContrast, 0.3, 3}, {kRotate, 0.8, 4}}},     {{{kInvert, 0.8, 0}, {kTranslateY, 0.0, 2}}},
    {{{kShearY, 0.7, 6}, {kSolarize, 0.4, 8}}},     {{{kInvert, 0.6, 0}, {kRotate, 0.8, 4}}},
    {{{kShearY, 0.3, 7}, {kTranslateX, 0.9, 3}}},   {{{kShearX, 0.1, 6}, {kInvert, 0.6, 0}}},
    {{{kSolarize, 0.7, 2}, {kTranslateY, 0.6, 7}}}, {{{kShearY, 0.8, 4}, {kInvert, 0.8, 0}}},
    {{{kShearX, 0.7, 9}, {kTranslateY, 0.8, 3}}},   {{{kShearY, 0.8, 5}, {kAutoContrast, 0.7, 0}}},
    {{{kShearX, 0.7, 2}, {kInvert, 0.1, 0}}},
};

// timm: "v0" (of the TPU EfficientNet), and "original"
constexpr SubPolicy kTimmV0[] = {
    {{{kEqualize, 0.8, 1}, {kShearY, 0.8, 4}}},        {{{kColor, 0.4, 9}, {kEqualize, 0.6, 3}}},
    {{{kColor, 0.4, 1}, {kRotate, 0.6, 8}}},           {{{kSolarize, 0.8, 3}, {kEqualize, 0.4, 7}}},
    {{{kSolarize, 0.4, 2}, {kSolarize, 0.6, 2}}},      {{{kColor, 0.2, 0}, {kEqualize, 0.8, 8}}},
    {{{kEqualize, 0.4, 8}, {kSolarizeAdd, 0.8, 3}}},   {{{kShearX, 0.2, 9}, {kRotate, 0.6, 8}}},
    {{{kColor, 0.6, 1}, {kEqualize, 1.0, 2}}},         {{{kInvert, 0.4, 9}, {kRotate, 0.6, 0}}},
    {{{kEqualize, 1.0, 9}, {kShearY, 0.6, 3}}},        {{{kColor, 0.4, 7}, {kEqualize, 0.6, 0}}},
    {{{kPosterize, 0.4, 6}, {kAutoContrast, 0.4, 7}}}, {{{kSolarize, 0.6, 8}, {kColor, 0.6, 9}}},
    {{{kSolarize, 0.2, 4}, {kRotate, 0.8, 9}}},        {{{kRotate, 1.0, 7}, {kTranslateY, 0.8, 9}}},
    {{{kShearX, 0.0, 0}, {kSolarize, 0.8, 4}}},        {{{kShearY, 0.8, 0}, {kColor, 0.6, 4}}},
    {{{kColor, 1.0, 0}, {kRotate, 0.6, 2}}},           {{{kEqualize, 0.8, 4}, {kEqualize, 0.0, 8}}},
    {{{kEqualize, 1.0, 4}, {kAutoContrast, 0.6, 2}}},  {{{kShearY, 0.4, 7}, {kSolarizeAdd, 0.6, 7}}},
    {{{kPosterize, 0.8, 2}, {kSolarize, 0.6, 10}}},    {{{kSolarize, 0.6, 8}, {kEqualize, 0.6, 1}}},
    {{{kColor, 0.8, 6}, {kRotate, 0.4, 5}}},
};
constexpr SubPolicy kTimmOriginal[] = {
    {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}},  {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 5}}},
    {{{kEqualize, 0.8, 8}, {kEqualize, 0.6, 3}}}, {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
    {{{kEqualize, 0.4, 7}, {kSolarize, 0.2, 4}}}, {{{kEqualize, 0.4, 4}, {kRotate, 0.8, 8}}},
    {{{kSolarize, 0.6, 3}, {kEqualize, 0.6, 7}}}, {{{kPosterize, 0.8, 5}, {kEqualize, 1.0, 2}}},
    {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},   {{{kEqualize, 0.6, 8}, {kPosterize, 0.4, 6}}},
    {{{kRotate, 0.8, 8}, {kColor, 0.4, 0}}},      {{{kRotate, 0.4, 9}, {kEqualize, 0.6, 2}}},
    {{{kEqualize, 0.0, 7}, {kEqualize, 0.8, 8}}}, {{{kInvert, 0.6, 4}, {kEqualize, 1.0, 8}}},
    {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},    {{{kRotate, 0.8, 8}, {kColor, 1.0, 2}}},
    {{{kColor, 0.8, 8}, {kSolarize, 0.8, 7}}},    {{{kSharpness, 0.4, 7}, {kInvert, 0.6, 8}}},
    {{{kShearX, 0.6, 5}, {kEqualize, 1.0, 9}}},   {{{kColor, 0.4, 0}, {kEqualize, 0.6, 3}}},
    {{{kEqualize, 0.4, 7}, {kSolarize, 0.2, 4}}}, {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 5}}},
    {{{kInvert, 0.6, 4}, {kEqualize, 1.0, 8}}},   {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},
    {{{kEqualize, 0.8, 8}, {kEqualize, 0.6, 3}}},
};
}  // namespace policy_tables

}  // namespace feedline::transform
