# SPDX-License-Identifier: Apache-2.0
"""Dataset classes over frames, masks and several labels, as training repositories write them."""

import os

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.nn import functional as F
from torch.utils.data import Dataset
from torchvision import transforms, tv_tensors
from torchvision.datasets.folder import default_loader
from torchvision.transforms import functional as TF
from torchvision.transforms import v2


class Frame(Dataset):
    def __init__(self, data, transform=None):
        self.df, self.img_dir, self.transform = data.frame, data.root, transform
        self.target_transform = None
        self.tags = ["a", "b", "c"]

    def __len__(self):
        return len(self.df)


class ColumnNumbers(Frame):
    def __getitem__(self, idx):
        img_path = os.path.join(self.img_dir, self.df.iloc[idx, 0])
        image = Image.open(img_path).convert("RGB")
        label = self.df.iloc[idx, 1]
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            label = self.target_transform(label)
        return image, label


class ColumnNames(Frame):
    def __getitem__(self, idx):
        image_path = self.df.iloc[idx]["path"]
        label = self.df.iloc[idx]["label"]
        image = Image.open(image_path).convert("RGB")
        if self.transform:
            image = self.transform(image)
        return image, torch.tensor(label, dtype=torch.long)


class ByLoc(Frame):
    def __getitem__(self, idx):
        image = Image.open(self.df.loc[idx, "path"]).convert("RGB")
        image = self.transform(image)
        label = torch.tensor(self.df.loc[idx, "label"])
        return image, label


class RowAttributes(Frame):
    def __getitem__(self, index):
        row = self.df.iloc[index]
        image = Image.open(row.path).convert("RGB")
        return {"img": self.transform(image), "target": torch.tensor(row.label, dtype=torch.long)}


class Series(Frame):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.image_ids, self.y = data.frame["id"], data.frame["label"]

    def __getitem__(self, i):
        path = f"{self.img_dir}/{self.image_ids[i]}.jpg"
        return self.transform(Image.open(path).convert("RGB")), self.y[i]


class Values(Frame):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.imgs, self.labels = data.frame["path"].values, data.frame.label.values

    def __getitem__(self, index):
        image = Image.open(self.imgs[index]).convert("RGB")
        if self.transform != None:  # noqa: E711
            image = self.transform(image)
        label = self.labels[index]
        return image, label


class ColumnOfFrame(Frame):
    def __getitem__(self, index):
        filename = self.df["id"].iloc[index] + ".jpg"
        image = Image.open(os.path.join(self.img_dir, filename)).convert("RGB")
        y = self.df["label"].values[index]
        return self.transform(image), np.float32(y)


class ByIat(Frame):
    def __getitem__(self, idx):
        name = self.df.iat[idx, 0]
        label = self.df.iat[idx, 1] - 1
        return self.transform(Image.open(os.path.join(self.img_dir, name)).convert("RGB")), label


class NameParts(Frame):
    def __getitem__(self, idx):
        img_name = os.path.join(self.img_dir, self.df.iloc[idx, 4] + ".jpg")
        image = Image.open(img_name).convert("RGB")
        image = self.transform(image)
        return image, int(self.df.iloc[idx, 1]), self.df.iloc[idx, 4]


class MultiHotColumns(Frame):
    def __getitem__(self, index):
        row = self.df.iloc[index]
        image = self.transform(Image.open(row["path"]).convert("RGB"))
        label = torch.tensor(row[self.tags].values.astype("float32"))
        return {"image": image, "label": label}


class MultiHotSlice(Frame):
    def __getitem__(self, idx):
        image = Image.open(self.df.iloc[idx, 3])
        if self.transform:
            image = self.transform(image)
        labels = self.df.iloc[idx][5:8].values.astype("float32")
        return image, torch.tensor(labels)


class MultiHotText(Frame):
    def __getitem__(self, idx):
        label = torch.zeros(3)
        for tag in self.df["tags"][idx].split():
            label[self.tags.index(tag)] = 1
        image = Image.open(self.df["path"][idx]).convert("RGB")
        return self.transform(image), label


class MultiHotList(Frame):
    def __getitem__(self, idx):
        tags = self.df["tags"][idx].split(" ")
        target = [1.0 if tag in tags else 0.0 for tag in self.tags]
        image = self.transform(Image.open(self.df["path"][idx]).convert("RGB"))
        return image, torch.FloatTensor(target)


class OneHot(Frame):
    def __getitem__(self, idx):
        image = self.transform(Image.open(self.df.path[idx]).convert("RGB"))
        label = F.one_hot(torch.tensor(self.df.label[idx]), num_classes=12)
        return image, label


class Regression(Frame):
    def __getitem__(self, idx):
        image = self.transform(Image.open(self.df["path"][idx]).convert("RGB"))
        point = np.array([self.df["x"][idx], self.df["y"][idx]], dtype=np.float32)
        return image, torch.from_numpy(point)


class Lines(Dataset):
    def __init__(self, data, transform=None):
        self.lines = [f"{path} {i} 0 1".split() for i, path in enumerate(data.paths)]
        self.transform, self.length = transform, len(self.lines)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        line = self.lines[index]
        image = Image.open(line[0])
        conditions = [int(condition) for condition in line[1:]]
        return self.transform(image), torch.Tensor(conditions)


class OptionalLabels(Frame):
    def __init__(self, data, transform=None, mode="train"):
        super().__init__(data, transform)
        self.mode, self.has_weight = mode, "weight" in data.frame.columns

    def __getitem__(self, index):
        image = Image.open(self.df.loc[index].path).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        image_id = self.df.loc[index].id
        if self.mode == "test":
            return image, image_id
        label = torch.tensor(self.df.loc[index].label, dtype=torch.float32)
        if self.has_weight:
            return image, label, image_id, 1.0
        return image, label, image_id


# -- images and masks


class Masks(Dataset):
    def __init__(self, data, transform=None):
        self.images, self.masks, self.transform = data.paths, data.masks, transform

    def __len__(self):
        return len(self.images)


class TwoTransforms(Masks):
    def __getitem__(self, index):
        image = Image.open(self.images[index]).convert("RGB")
        mask = Image.open(self.masks[index]).convert("L")
        return self.transform(image), self.transform(mask)


class JointArrays(Masks):
    def __getitem__(self, index):
        image = np.array(Image.open(self.images[index]).convert("RGB"))
        mask = np.array(Image.open(self.masks[index]).convert("L"), dtype=np.float32)
        mask[mask == 255.0] = 1.0
        return image[:20, :20], mask[:20, :20]


class JointDict(Masks):
    def __getitem__(self, idx):
        sample = {"image": Image.open(self.images[idx]).convert("RGB"), "mask": Image.open(self.masks[idx])}
        return {key: self.transform(value) for key, value in sample.items()}


class MaskByName(Masks):
    def __getitem__(self, item):
        img_path = self.images[item]
        mask_path = img_path.replace(".jpg", ".png")
        image = Image.open(img_path).convert("RGB")
        mask = Image.open(mask_path).convert("L")
        image = self.transform(image)
        mask = self.transform(mask)
        return image, mask


class TwoMaskTransforms(Masks):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.mask_transform = transforms.Compose([transforms.CenterCrop(20), transforms.PILToTensor()])

    def __getitem__(self, idx):
        image = Image.open(self.images[idx]).convert("RGB")
        mask = Image.open(self.masks[idx]).convert("L")
        if self.transform is not None:
            image = self.transform(image)
        if self.mask_transform is not None:
            mask = self.mask_transform(mask)
        return image, mask, os.path.basename(self.images[idx])


class MaskDict(Masks):
    def __getitem__(self, idx):
        sample = {
            "image": Image.open(self.images[idx]).convert("RGB"),
            "mask": Image.open(self.masks[idx]).convert("L"),
        }
        if self.transform:
            sample["image"] = self.transform(sample["image"])
            sample["mask"] = self.transform(sample["mask"])
        sample["name"] = self.images[idx]
        return sample


class JointMaskByName(Masks):
    def __getitem__(self, i):
        image_path = self.images[i]
        image = Image.open(image_path).convert("RGB")
        mask = Image.open(image_path.replace(".jpg", ".png")).convert("L")
        return joint_crop(image, mask)


class JointTensors(Masks):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.transforms = v2.Compose([v2.CenterCrop(20), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

    def __getitem__(self, idx):
        image = Image.open(self.images[idx]).convert("RGB")
        mask = tv_tensors.Mask(np.array(Image.open(self.masks[idx])))
        image, mask = self.transforms(image, mask)
        return image, mask


def joint_crop(image, mask):
    image, mask = image.crop((0, 0, 20, 20)), mask.crop((0, 0, 20, 20))
    return TF.to_tensor(image), TF.to_tensor(mask)


class JoinedMasks(Masks):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.root, self.images = data.root, data.names
        self.masks = [os.path.basename(mask) for mask in data.masks]

    def __getitem__(self, index):
        image = np.array(Image.open(os.path.join(self.root, self.images[index])).convert("RGB"))
        mask = np.array(Image.open(os.path.join(self.root, self.masks[index])).convert("L"))
        return image[:20, :20], mask[:20, :20]


class MaskOfLabels(Masks):
    def __getitem__(self, idx):
        img = Image.open(self.images[idx]).convert("RGB")
        mask = torch.as_tensor(np.array(Image.open(self.masks[idx])), dtype=torch.long)
        return self.transform(img), mask[:20, :20]


class NamedMask(Masks):
    def __getitem__(self, idx):
        img = Image.open(self.images[idx]).convert("RGB")
        with Image.open(self.masks[idx]) as mask:
            mask = np.array(mask.resize((20, 20), Image.NEAREST))
        mask[mask > 200] = 0
        return {"image": self.transform(img), "mask": torch.from_numpy(mask).long().unsqueeze(0)}


class OptionalMasks(Masks):
    def __getitem__(self, idx):
        image = default_loader(self.images[idx])
        if self.transform is not None:
            image = self.transform(image)
        if self.masks is None:
            return image
        mask = np.asarray(ImageOps.exif_transpose(Image.open(self.masks[idx]).convert("1")), np.uint8)
        return image, torch.tensor(mask[:20, :20] // 255, dtype=torch.float32)


class SuperResolution(Masks):
    def __getitem__(self, idx):
        high = Image.open(self.images[idx]).convert("RGB")
        low = high.resize((8, 8), Image.BICUBIC)
        return self.transform(low), self.transform(high)


class DictTransform(Frame):
    def __getitem__(self, idx):
        image = Image.open(self.df.iloc[idx, 3]).convert("RGB")
        sample = {"image": image, "landmarks": self.df.iloc[idx, 1:3].to_numpy()}
        sample = both(sample, self.transform)
        return sample["image"], sample["label"]


def both(sample, transform):
    sample = dict(sample)
    sample["label"] = 0
    sample["image"] = transform(sample["image"])
    return sample


class TorchvisionIo(Frame):
    def __getitem__(self, idx):
        from torchvision.io import read_image

        image = read_image(self.df.iloc[idx, 3])
        return image[:, :20, :20], self.df.iloc[idx, 1]


class NumpyFiles(Frame):
    def __getitem__(self, idx):
        image = np.asarray(Image.open(self.df.iloc[idx]["path"]))
        image = torch.from_numpy(image.transpose(2, 0, 1).copy()).float() / 255
        return image[:, :20, :20], self.df.iloc[idx]["label"]


class Oversampled(Frame):
    def __getitem__(self, idx):
        row = self.df.sample(1, random_state=idx).iloc[0]
        return self.transform(Image.open(row.path).convert("RGB")), row.label


class SavedFeatures(Frame):
    def __getitem__(self, idx):
        features = np.ones(8, dtype=np.float32) * idx
        return torch.from_numpy(features), self.df.iloc[idx, 1]
