import ExportCoordination
import HTTPServer
import Sending
import StoreCoordination

extension InspectorRoutes {
  /// Exporting stores for support, and sending what was exported.
  mutating func addBundles(_ parts: InspectorParts) {
    let catalogue = BundleCatalogue(home: parts.home, surroundings: parts.surroundings)
    let prepared = PreparedExports()
    let exports = ExportActions(parts, prepared, catalogue)
    page(
      "/stores/{id}/export",
      about: "Asks before: Makes ready what a bundle for support would hold, and shows it on the same page.", .store,
      query: [.init("job", "The job whose progress is shown.")]
    ) { request, id in try exports.page(parts.catalogue.store(id), request.query) }
    action(
      "/stores/{id}/export", about: "Makes ready what a bundle for support would hold.", .store,
      fields: ExportActions.fields
    ) { _, form, id in try exports.prepare(parts.catalogue.store(id), form) }
    page("/exports/{export}", about: "What a bundle would hold, before the user agrees to it.", .identifier) { _, id in
      PreparedExportPage(entry: try prepared.entry(id))
    }
    action("/exports/{export}/write", about: "Writes a bundle that was agreed to.", .identifier) { _, _, id in
      try exports.write(id)
    }
    action("/exports/{export}/forget", about: "Lets go of what was made ready.", .identifier) { _, _, id in
      let entry = try prepared.entry(id)
      prepared.forget(id)
      return .done(.store(entry.store))
    }
    page("/bundles", about: "The bundles that were written here, and what lies in the outbox.") { _ in
      BundlesPage(catalogue, parts.outbox)
    }
    page("/bundles/{bundle}", about: "One bundle: its sum, its size, and where it was sent.", .text) { _, name in
      BundlePage(try catalogue.bundle(name), catalogue, parts.outbox, receiver: parts.receiver)
    }
    other("/bundles/{bundle}/file", about: "The bundle itself.", type: "application/octet-stream", .text) {
      request, name in
      let bundle = try catalogue.bundle(name)
      guard let tag = EntityTag(try catalogue.preview(of: bundle).sha256) else {
        throw Refusal(.internalServerError, "the bundle has no sum")
      }
      let file = BundleFile(file: try parts.surroundings.fileSystem.open(bundle.path))
      return Response.ranges(file, tag: tag, type: "application/octet-stream", for: request)
        .downloaded(as: bundle.name)
    }
    page("/bundles/{bundle}/discard", about: "Asks before: Removes a bundle from this machine.", .text) { _, name in
      BundleRemovalPage(bundle: try catalogue.bundle(name))
    }
    action("/bundles/{bundle}/discard", about: "Removes a bundle from this machine.", .text) { _, _, name in
      try parts.surroundings.fileSystem.unlink(try catalogue.bundle(name).path)
      return .done(.to("bundles"))
    }
    addSending(SendActions(parts, catalogue))
  }

  private mutating func addSending(_ sending: SendActions) {
    page("/bundles/{bundle}/send", about: "Asks before: Sends a bundle.", .text) { _, name in try sending.page(name) }
    action("/bundles/{bundle}/send", about: "Sends a bundle to the receiver.", .text, fields: SendActions.fields) {
      _, form, name in
      try sending.send(name, form)
    }
    action("/outbox/{entry}/retry", about: "Sends what lies in the outbox on.", .identifier) { _, _, id in
      try sending.retry(id)
    }
    action("/outbox/{entry}/cancel", about: "Takes back what lies in the outbox.", .identifier) { _, _, id in
      try sending.cancel(id)
    }
  }
}
