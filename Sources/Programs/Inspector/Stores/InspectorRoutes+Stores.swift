import HTTPServer

extension InspectorRoutes {
  /// The stores, and what is running.
  mutating func addStores(_ parts: InspectorParts) {
    page(
      "/stores", about: "The quarantined stores of the home, the live ones beside them, and the backups; newest first.",
      query: [.init("q", "Only stores whose name, reason or model has this text in it.")]
    ) { request in
      StoresPage(parts, filter: request.query["q"] ?? "")
    }
    page("/stores/{id}", about: "One store: its damage, its entities, its receipt, and what happened to it.", .store) {
      _, id in
      let store = try parts.catalogue.store(id)
      switch store.kind {
      case .quarantined(let stored, _): return QuarantinedStorePage(store, stored, parts)
      case .live(let files): return LiveStorePage(store, files, parts)
      case .backup(let backup, let place): return BackupPage(store, backup, place, parts)
      }
    }
    page("/stores/{id}/map", about: "The state of each page of a store, and whose it is.", .store) { _, id in
      PageMapPage(try parts.catalogue.store(id), parts)
    }
    page("/stores/{id}/losses", about: "What of a store is lost, in the words of its owner.", .store) { _, id in
      LossesPage(try parts.catalogue.store(id), parts)
    }
    page("/work", about: "What is running, and what has ended since the inspector began.") { _ in
      WorkPage(jobs: parts.work.jobs)
    }
    other(
      "/events", about: "How far running work is, as it happens (server-sent events).", type: "text/event-stream"
    ) { request in
      parts.work.events(for: try parts.sessions.session(of: request))
    }
  }
}
