package import HTTPServer
import PersistentStore
import SQLiteFormat

/// The pages of one store, as tabs above each of them.
package enum StoreTab: String, Sendable, CaseIterable {
  case overview
  case losses
  case records
  case map
  case compare
  case query
  case plan

  /// The tabs of a store, one of them marked.
  ///
  /// - Parameters:
  ///   - current: the one that is shown; nil for a page below none of them.
  ///   - isDamaged: whether a live store is known to be damaged, so that there is something to say of what is lost.
  package static func bar(_ store: ListedStore, _ current: StoreTab?, isDamaged: Bool = false) -> HTML {
    let links = allCases.compactMap { tab -> HTML? in
      guard let target = tab.target(store, isDamaged: isDamaged || tab == current) else { return nil }
      let mark: HTML = tab == current ? " aria-current=\"page\"" : ""
      return "<a href=\"\(target)\"\(mark)>\(tab.title)</a>\n"
    }
    return "<nav class=\"tabs\" aria-label=\"This store\">\(links)</nav>"
  }

  private var title: String {
    switch self {
    case .overview: "Overview"
    case .losses: "What did I lose?"
    case .records: "Records"
    case .map: "Page map"
    case .compare: "Compare"
    case .query: "Query"
    case .plan: "Migration"
    }
  }

  private func target(_ store: ListedStore, isDamaged: Bool) -> RequestTarget? {
    switch (self, store.kind) {
    case (.overview, _): .store(store.id)
    case (.map, _) where store.isMissing: nil
    case (.losses, _) where store.isOnlyReceipt, (.records, _) where store.isOnlyReceipt,
      (.query, _) where store.isOnlyReceipt, (.plan, _) where store.isOnlyReceipt:
      nil
    case (.losses, .quarantined): .store(store.id, "losses")
    case (.losses, .live): isDamaged ? .store(store.id, "losses") : nil
    case (.losses, .backup): nil
    case (.map, .backup), (.compare, .backup): nil
    case (.map, _): .store(store.id, "map")
    case (.compare, _): .store(store.id, "compare")
    case (.records, _): StoreLinks.records(store)
    case (.query, _): StoreLinks.query(store)
    case (.plan, .backup): nil
    case (.plan, _): .store(store.id, "plan")
    }
  }
}

/// Addresses of what is below a store.
enum StoreLinks {
  /// The records of a store: of what was salvaged where there is such, else of what is there.
  static func records(_ store: ListedStore) -> RequestTarget {
    .store(store.id, side(store), "entities")
  }

  /// The records of an entity; nil for a name that no address can have.
  static func records(_ store: ListedStore, entity: String) -> RequestTarget? {
    let isPlain = entity.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20 && scalar.value != 0x7F && scalar != "/" && scalar != "\\"
    }
    // Core Data's own tables are not among the records.
    guard !StoreLayout.bookkeepingTableNames.contains(entity.uppercased()) else { return nil }
    guard isPlain, !entity.isEmpty, entity != ".", entity != "..", !entity.hasPrefix("~"), entity.utf8.count <= 200
    else { return nil }
    return records(store).appending(entity, "records")
  }

  /// Queries over the same side.
  static func query(_ store: ListedStore) -> RequestTarget { .store(store.id, side(store), "query") }

  private static func side(_ store: ListedStore) -> String {
    switch store.kind {
    case .quarantined: store.salvage == nil ? "original" : "salvaged"
    case .live: "live"
    case .backup: "backup\(store.id.text.dropFirst())"
    }
  }
}
