package import HTTPServer
internal import Platform

/// A tus 1.0 server: creation (with upload), expiration, termination and checksums.
///
/// Every request but OPTIONS needs a token; a sender sees only its own uploads. Bodies are read only after their header
/// passed.
package final class TusServer: Sendable {
  package static let path = "/inbox/uploads"

  /// A shorter address for creation; GET there is a page.
  package static let shortPath = "/inbox"

  private static let extensions = "creation,creation-with-upload,expiration,termination,checksum"

  private let uploads: TusUploads
  private let router: Router

  package init(_ inbox: Inbox) {
    let uploads = TusUploads(inbox)
    self.uploads = uploads
    var router = Router()
    for path in [Self.path, Self.shortPath] {
      router.addStream(.post, path) { request, length in Self.intake { try uploads.create(request, length) } }
    }
    router.addStream(.patch, Self.path + "/{id}", .upload) { request, length, id in
      Self.intake { try uploads.append(request, length, id) }
    }
    router.add(.head, Self.path + "/{id}", .upload) { request, id in Self.answer { try uploads.look(request, id) } }
    router.add(.get, Self.path + "/{id}", .upload) { request, id in Self.answer { try uploads.receipt(request, id) } }
    router.add(.delete, Self.path + "/{id}", .upload) { request, id in Self.answer { try uploads.end(request, id) } }
    let options = Self.options(inbox.limits.bundleBytes)
    for path in [Self.path, Self.shortPath] { router.add(.options, path) { _ in options } }
    router.add(.options, Self.path + "/{id}", .upload) { _, _ in options }
    self.router = router
  }

  package func isAsked(_ request: Request) -> Bool {
    let segments = request.target.segments
    if segments == ["inbox"] { return request.method == .post || request.method == .options }
    return segments.starts(with: ["inbox", "uploads"])
  }

  /// Chooses a body's consumer; nil to collect it.
  package func intake(of request: Request, length: Int64?) -> BodyIntake? {
    guard isAsked(request) else { return nil }
    // Do not wait for a body at an address that is not an upload's.
    return router.intake(of: request, length: length) ?? (length == 0 ? nil : .refused(respond(to: request)))
  }

  package func respond(to request: Request) -> Response { Self.answer { try router.answer(to: request) } }

  private static func answer(_ make: () throws -> Response) -> Response {
    do {
      return stamped(try make())
    } catch {
      return stamped(TusRefusal(error).response)
    }
  }

  private static func intake(_ make: () throws -> BodyIntake) -> BodyIntake {
    do {
      return try make()
    } catch {
      return .refused(stamped(TusRefusal(error).response))
    }
  }

  /// Adds the protocol version, which every response has.
  static func stamped(_ response: Response) -> Response {
    var copy = response
    copy.headers.set(TusField.resumable, TusVersion.current)
    return copy
  }

  private static func options(_ maximum: Int64) -> Response {
    Response(
      .noContent,
      headers: [
        TusField.version: TusVersion.current, TusField.extension: extensions, TusField.maxSize: String(maximum),
        TusField.checksumAlgorithm: PartChecksum.algorithms.joined(separator: ","),
      ])
  }
}

extension PathParameter where Value == String {
  /// The identifier of an upload or bundle.
  package static var upload: PathParameter { PathParameter { InboxFolders.isID($0) ? $0 : nil } }
}
