import HTTPServer
import StoreCoordination

/// The stylesheet, the scripts and the icon, read once when the inspector begins.
///
/// No name of a request is ever a path: each file has a route of its own.
struct StaticFiles: Sendable {
  struct File: Sendable {
    let name: String
    let type: String
    let bytes: BytesInMemory
    let tag: EntityTag
  }

  let files: [File]

  /// Reads a folder; what is no stylesheet, script or picture, or is larger than a megabyte, is left out.
  ///
  /// - Throws: `FileError` where the folder, or a file in it, cannot be read.
  init(in folder: FilePath, _ fileSystem: FileSystem) throws {
    var files: [File] = []
    for name in try fileSystem.entries(of: folder).sorted(by: { $0.string < $1.string }) {
      let path = folder.appending(name)
      guard let type = Self.type(of: path.extension), !name.string.hasPrefix("."),
        let status = try fileSystem.status(of: path), status.kind == .regular
      else { continue }
      let bytes = try fileSystem.contents(of: path, limit: 1 << 20)
      guard let tag = EntityTag(FileDigest(of: bytes).hexadecimal) else { continue }
      files.append(File(name: name.string, type: type, bytes: BytesInMemory(bytes), tag: tag))
    }
    self.files = files
  }

  private static func type(of suffix: String?) -> String? {
    switch suffix {
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "svg": "image/svg+xml"
    default: nil
    }
  }
}

extension InspectorRoutes {
  /// The page's own files; they tell nothing, so they need no session.
  mutating func addFiles(_ files: StaticFiles) {
    for file in files.files {
      open("/public/\(file.name)", about: "A file of the pages.", type: file.type) { request in
        .ranges(file.bytes, tag: file.tag, type: file.type, for: request)
      }
    }
  }
}
