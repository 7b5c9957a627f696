// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Mixins by their templates: `using Requires = MixinList<LoggingMixin>;` says that these come
/// earlier in the composition.
template <template <class> class... Mixins>
struct MixinList {};

/// Base of every mixin, which names itself so that the bases of a composition differ. A mixin is
/// `template <class Derived> class XMixin : public Mixin<Derived, XMixin>` and provides, all
/// public:
///   - `static constexpr std::string_view kSection` and `kMeaning`: its section of the config;
///   - `using Config`: that section's struct, with `describe`;
///   - a constructor from its Config, which may look at nothing but the Config;
///   - `using Hooks = HookList<…>` and the methods it lists (hooks.h);
///   - `using Requires = MixinList<…>`: the mixins that must come before it, none by default;
///   - `using After = MixinList<…>`: the mixins that come before it where the composition has them.
template <class Derived, template <class> class Self>
class Mixin {
 public:
  using Requires = MixinList<>;
  using After = MixinList<>;

 protected:
  /// The trainer this mixin is part of; to be used from hooks, not from the constructor.
  Derived& trainer() { return static_cast<Derived&>(*this); }
};

}  // namespace phalanx
