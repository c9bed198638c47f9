import Platform
import SystemPackage

enum KeyFiles {
  private static let limit = 1 << 20

  /// Parses keys, or reads files with one key a line.
  static func recipients(_ texts: [String]) throws -> [AgeRecipient] {
    var result: [AgeRecipient] = []
    for text in texts {
      if text.lowercased().hasPrefix("age1") {
        do throws(AgeError) {
          result.append(try AgeRecipient(text))
        } catch {
          throw CommandLineSlip(error: CommandError(key: error, path: nil))
        }
        continue
      }
      let path = RawArguments.path(of: text)
      let lines = String(decoding: try FileSystem().contents(of: path, limit: limit), as: UTF8.self)
        .split(whereSeparator: \.isNewline).map(String.init)
      var found = 0
      for (number, line) in lines.enumerated() where !line.hasPrefix("#") && !line.allSatisfy(\.isWhitespace) {
        do throws(AgeError) {
          result.append(
            line.uppercased().hasPrefix("AGE-SECRET-KEY-") ? try AgeIdentity(line).recipient : try AgeRecipient(line))
        } catch {
          throw CommandError(key: error, path: path, line: number + 1)
        }
        found += 1
      }
      guard found > 0 else {
        throw CommandError(.unusableKey, operation: "read the key", path: path, detail: "it holds no key")
      }
    }
    return result
  }

  static func identities(_ paths: [FilePath]) throws -> [AgeIdentity] {
    var result: [AgeIdentity] = []
    for path in paths {
      let text = String(decoding: try FileSystem().contents(of: path, limit: limit), as: UTF8.self)
      do throws(AgeError) {
        result += try AgeIdentity.identities(in: text)
      } catch {
        throw CommandError(key: error, path: path)
      }
    }
    return result
  }
}
