internal import HTTPServer
import PersistentStore
import SQLiteFormat

enum StoreTab: String, Sendable, CaseIterable {
  case overview, losses, records, map, compare, query, plan

  /// - Parameters:
  ///   - current: the marked tab; nil for other pages.
  ///   - isDamaged: whether a live store is damaged and has losses to show.
  static func bar(_ store: ListedStore, _ current: StoreTab?, isDamaged: Bool = false) -> HTML {
    .tabs(
      "This store",
      allCases.compactMap { tab in
        tab.target(store, isDamaged: isDamaged || tab == current).map {
          (HTML(escaping: tab.title), $0, tab == current)
        }
      })
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

enum StoreLinks {
  static func records(_ store: ListedStore) -> RequestTarget { .store(store.id, side(store), "entities") }

  /// An entity's records; nil for names impossible in a URL.
  static func records(_ store: ListedStore, entity: String) -> RequestTarget? {
    // Core Data's own tables are not among the records.
    guard !StoreLayout.bookkeepingTableNames.contains(entity.uppercased()), SegmentName.isUsable(entity) else {
      return nil
    }
    return records(store).appending(entity, "records")
  }

  static func query(_ store: ListedStore) -> RequestTarget { .store(store.id, side(store), "query") }

  private static func side(_ store: ListedStore) -> String {
    switch store.kind {
    case .quarantined: store.salvage == nil ? "original" : "salvaged"
    case .live: "live"
    case .backup: "backup\(store.id.text.dropFirst())"
    }
  }
}
