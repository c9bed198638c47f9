import HTTPServer

extension InspectorRoutes {
  /// The stores, and what is running.
  mutating func addStores(_ parts: InspectorParts) {
    page(
      "/stores", about: "The quarantined stores of the home, the live ones beside them, and the backups; newest first.",
      query: [.init("q", "Only stores whose name, reason or model has this text in it.")],
      shown: { request in
        StoresPage(parts, filter: request.query["q"] ?? "", patience: StoresPage.patience)
      },
      make: { request in StoresPage(parts, filter: request.query["q"] ?? "") })
    let look = DocumentedRoute.Field(
      "look", "\"yes\" to look at every page of a large store; a small one is looked at in any case.")
    page(
      "/stores/{id}", about: "One store: its damage, its entities, its receipt, and what happened to it.", .store,
      query: [look]
    ) { request, id in
      let store = try parts.catalogue.store(id)
      let isAsked = request.query["look"] == "yes"
      switch store.kind {
      case .quarantined(let stored, _): return QuarantinedStorePage(store, stored, parts, isAsked: isAsked)
      case .live(let files): return LiveStorePage(store, files, parts, isAsked: isAsked)
      case .backup(let backup, let place): return BackupPage(store, backup, place, parts)
      }
    }
    page(
      "/stores/{id}/map", about: "The state of each page of a store, and whose it is.", .store, query: [look]
    ) { request, id in
      let store = try parts.catalogue.store(id)
      try store.requireFiles()
      return PageMapPage(store, parts, isAsked: request.query["look"] == "yes")
    }
    page(
      "/stores/{id}/losses", about: "What of a store is lost, in the words of its owner.", .store, query: [look]
    ) { request, id in
      let store = try parts.catalogue.store(id)
      if store.isOnlyReceipt { try store.requireFiles() }
      return LossesPage(store, parts, isAsked: request.query["look"] == "yes")
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
