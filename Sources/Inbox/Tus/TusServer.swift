package import HTTPServer
internal import Platform

/// The receiving side of tus 1.0: creation, also with the first bytes, expiration, termination and checksums.
///
/// Every request but OPTIONS needs the token of a sender, who sees no uploads but its own. A body is only read once
/// its header was found good.
package final class TusServer: Sendable {
  /// The address of uploads; one of them is below it.
  package static let path = "/inbox/uploads"

  /// The shorter address at which an upload is announced too; what is asked for there by GET is a page.
  package static let shortPath = "/inbox"

  private static let extensions = "creation,creation-with-upload,expiration,termination,checksum"

  private let uploads: TusUploads
  private let router: Router

  /// A server for an inbox.
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

  /// Whether a request is about uploads.
  package func isAsked(_ request: Request) -> Bool {
    let segments = request.target.segments
    if segments == ["inbox"] { return request.method == .post || request.method == .options }
    return segments.starts(with: ["inbox", "uploads"])
  }

  /// Who takes the body of a request; nil where it has none that is taken as it comes.
  package func intake(of request: Request, length: Int64?) -> BodyIntake? {
    guard isAsked(request) else { return nil }
    // A body at no address of an upload is not waited for.
    return router.intake(of: request, length: length) ?? (length == 0 ? nil : .refused(respond(to: request)))
  }

  /// The answer to a request.
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

  /// The response with the version of the protocol, which every one has.
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
  /// The identifier of an upload, or of a bundle.
  package static var upload: PathParameter { PathParameter { InboxFolders.isID($0) ? $0 : nil } }
}
