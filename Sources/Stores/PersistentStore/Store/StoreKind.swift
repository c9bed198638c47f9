/// What a store is.
public enum StoreKind: String, Sendable, Hashable {
  /// A store in Core Data's layout; SwiftData's is the same.
  case coreData = "core-data"

  case sqlite
}
