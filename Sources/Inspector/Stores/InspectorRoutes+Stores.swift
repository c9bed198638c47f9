import HTTPServer

extension InspectorRoutes {
  /// The stores, and what is running.
  mutating func addStores(_ parts: InspectorParts) {
    page(
      "/stores", about: "The quarantined stores of the home, the live ones beside them, and the backups; newest first.",
      query: [.init("q", "Only stores whose name, reason or model has this text in it.")]
    ) { request in
      StoresPage(parts.catalogue, filter: request.query["q"] ?? "")
    }
    page("/work", about: "What is running, and what has ended since the inspector began.") { _ in
      WorkPage(jobs: parts.work.jobs)
    }
    other(
      "/events", about: "How far running work is, as it happens (server-sent events).", type: "text/event-stream"
    ) { _ in
      parts.work.events()
    }
  }
}
