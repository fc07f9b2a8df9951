#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/file.h"

namespace headrace {

/// Opens the files of a checkpoint that exists on no drive: config.json, index and shards as a publisher would write
/// them for `config_text`, with headers that are true and zeroes for data. So a model can be opened, checked and
/// planned for without its weights. The folder part of a path is ignored, but should name no folder that is there.
/// Texts are made when they are read, one shard's at a time; `ReadMode::kDirect` files have blocks of 4096 bytes, as
/// most drives do, so that slots come out as large as on a drive. The opener and its files may be used by several
/// threads. The errors of a configuration that cannot be listed are those of `KimiTensors::parse`.
Result<FileOpener> virtual_checkpoint_opener(std::string_view config_text);

}  // namespace headrace
