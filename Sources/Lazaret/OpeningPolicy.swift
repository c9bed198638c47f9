/// What an app wants done with a store that cannot simply be opened.
public struct OpeningPolicy: Sendable, Hashable {
  /// What is done with a store that is damaged, or that no way leads from to the app's model.
  public enum Remedy: String, Sendable, Hashable, CaseIterable {
    /// Quarantine it, install what can be salvaged, and open that.
    ///
    /// Salvage is not part of this version yet: what is installed is an empty store, and the event says so.
    case salvage

    /// Quarantine it, and open an empty store.
    case emptyStore = "empty-store"

    /// Leave it where it is, and throw.
    case refuse
  }

  public var whenDamaged: Remedy
  public var whenIncompatible: Remedy

  public init(whenDamaged: Remedy = .salvage, whenIncompatible: Remedy = .salvage) {
    self.whenDamaged = whenDamaged
    self.whenIncompatible = whenIncompatible
  }
}
