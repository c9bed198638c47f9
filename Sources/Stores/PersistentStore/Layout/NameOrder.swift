internal import StoreFiles

/// The orders that Core Data sorts names in.
enum NameOrder {
  /// Without regard to case, by the code points of the upper-cased names; the names themselves decide a tie.
  ///
  /// Format section 3.3: upper-casing both sides reproduces the numbering of every store that was checked.
  static func withoutCase(_ names: some Sequence<String>) -> [String] {
    names.map { (name: $0, key: Array($0.uppercased().utf8)) }
      .ordered { first, second in
        first.key == second.key
          ? byCodeUnits(first.name, second.name) : first.key.lexicographicallyPrecedes(second.key)
      }
      .map(\.name)
  }

  /// By code units, so that no locale and no normalization plays a part.
  static func byCodeUnits(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
  }
}
