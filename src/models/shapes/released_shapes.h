#pragma once

#include <optional>
#include <string_view>

namespace headrace {

/// The config.json of a released model, by the name of its shape ("kimi-linear-48b", "kimi-k3"), with every key that
/// decides tensors or arithmetic; nothing for other names. Shapes without weights serve planning and made-up models.
std::optional<std::string_view> released_shape(std::string_view name);

/// Their names, for messages.
inline constexpr const char* kReleasedShapeNames = "kimi-linear-48b, kimi-k3";

}  // namespace headrace
