// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "trainer/api/mixin.h"

/// What Trainer checks of its list of mixins at compile time.
namespace phalanx::composition_detail {

template <class Trainer, template <class> class Wanted, class Before>
inline constexpr bool kContains = false;
template <class Trainer, template <class> class Wanted, template <class> class... Before>
inline constexpr bool kContains<Trainer, Wanted, MixinList<Before...>> =
    (std::is_same_v<Wanted<Trainer>, Before<Trainer>> || ...);

template <class Trainer, class Required, class Before>
inline constexpr bool kAllBefore = false;
template <class Trainer, template <class> class... Required, class Before>
inline constexpr bool kAllBefore<Trainer, MixinList<Required...>, Before> =
    (kContains<Trainer, Required, Before> && ...);

// None of the mixins that one follows comes later.
template <class Trainer, class Followed, class Later>
inline constexpr bool kNoneLater = false;
template <class Trainer, template <class> class... Followed, class Later>
inline constexpr bool kNoneLater<Trainer, MixinList<Followed...>, Later> =
    (!kContains<Trainer, Followed, Later> && ...);

// Walks the list with those that came before, and asks each for what it requires and follows.
template <class Trainer, class Before, template <class> class... Rest>
struct InOrder : std::true_type {};
template <class Trainer, template <class> class... Before, template <class> class First,
          template <class> class... Rest>
struct InOrder<Trainer, MixinList<Before...>, First, Rest...>
    : std::bool_constant<
          kAllBefore<Trainer, typename First<Trainer>::Requires, MixinList<Before...>> &&
          kNoneLater<Trainer, typename First<Trainer>::After, MixinList<Rest...>> &&
          InOrder<Trainer, MixinList<Before..., First>, Rest...>::value> {};

/// Each mixin comes after all that it requires, and before none that it follows.
template <class Trainer, class Before, template <class> class... Mixins>
inline constexpr bool kInOrder = InOrder<Trainer, Before, Mixins...>::value;

/// No two mixins name the same section.
template <class... Mixins>
inline constexpr bool kSectionsDiffer = [] {
  const std::array<std::string_view, sizeof...(Mixins)> sections{Mixins::kSection...};
  for (size_t i = 0; i < sections.size(); ++i) {
    for (size_t j = i + 1; j < sections.size(); ++j) {
      if (sections[i] == sections[j]) return false;
    }
  }
  return true;
}();

}  // namespace phalanx::composition_detail
